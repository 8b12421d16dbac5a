import { expect, test } from 'vitest';
import { loadConfig } from '../../src/telemetry/config.ts';
import { readSdk } from '../../src/telemetry/config-env.ts';

test.each([
  [undefined, 'auto'],
  ['', 'auto'],
  ['auto', 'auto'],
  [' ON ', 'on'],
  ['off', 'off'],
])('TIME_BUDGET_SDK=%j is %s', (text, sdk) => {
  expect(readSdk({ TIME_BUDGET_SDK: text })).toEqual({ sdk });
});

test('anything else is told in one line', () => {
  expect(readSdk({ TIME_BUDGET_SDK: 'true' })).toEqual({
    problem: 'TIME_BUDGET_SDK: "true" is not allowed; use auto or on or off',
  });
});

test('it is a variable that is known, and a mistyped one is told', () => {
  expect(loadConfig({ TIME_BUDGET_SDK: 'on' }, () => '').ok).toBe(true);
  expect(loadConfig({ TIME_BUDGET_SDKS: 'on' }, () => '')).toEqual({
    ok: false,
    problems: ['TIME_BUDGET_SDKS: unknown variable, did you mean TIME_BUDGET_SDK?'],
  });
});
