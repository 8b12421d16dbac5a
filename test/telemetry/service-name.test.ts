import { expect, test } from 'vitest';
import { givenServiceName, serviceName } from '../../src/telemetry/service-name.ts';

test.each([
  ['the variable', { OTEL_SERVICE_NAME: 'orders', OTEL_RESOURCE_ATTRIBUTES: 'service.name=other' }, 'orders'],
  [
    'the attribute',
    { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=prod, service.name = orders ,a=b' },
    'orders',
  ],
  ['an encoded attribute', { OTEL_RESOURCE_ATTRIBUTES: 'service.name=my%20orders%3Dx' }, 'my orders=x'],
  ['an attribute that cannot be decoded', { OTEL_RESOURCE_ATTRIBUTES: 'service.name=%E0%A4%A' }, 'shop'],
  ['an empty attribute', { OTEL_RESOURCE_ATTRIBUTES: 'service.name=' }, 'shop'],
  ['a list without =', { OTEL_RESOURCE_ATTRIBUTES: 'service.name' }, 'shop'],
  ['blanks', { OTEL_SERVICE_NAME: '  ' }, 'shop'],
  ['nothing', {}, 'shop'],
])('%s', (_what, env, expected) => {
  expect(serviceName(env, '@acme/shop')).toBe(expected);
});

test('the name of the package is used without its scope, and only where the variables give none', () => {
  expect(serviceName({}, 'shop')).toBe('shop');
  expect(serviceName({}, undefined)).toBeUndefined();
  expect(givenServiceName({})).toBeUndefined();
  expect(givenServiceName({ OTEL_SERVICE_NAME: 'orders' })).toBe('orders');
});

test('128 characters are kept', () => {
  expect(serviceName({ OTEL_SERVICE_NAME: 'x'.repeat(128) }, undefined)).toHaveLength(128);
  expect(serviceName({ OTEL_SERVICE_NAME: 'x'.repeat(129) }, undefined)).toHaveLength(128);
});
