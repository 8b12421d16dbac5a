import { channel } from 'node:diagnostics_channel';
import { metrics, trace } from '@opentelemetry/api';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Runtime } from '../../../instrumentation/process/runtime.ts';
import { chooseSdk } from '../../../instrumentation/sdk/choice.ts';
import { defaultConfig } from '../../../src/telemetry/config.ts';

const own = vi.hoisted(() => ({
  prepared: 0,
  moduleNames: ['express'],
  start: vi.fn(),
  giveWay: vi.fn(),
  standBack: vi.fn(),
}));
const signs = vi.hoisted(() => ({ declared: false, onSeen: undefined as (() => void) | undefined }));

vi.mock('../../../instrumentation/sdk/own-sdk.ts', () => ({
  OwnSdk: {
    prepare: async () => {
      own.prepared++;
      return own;
    },
  },
}));
vi.mock('../../../instrumentation/sdk/foreign-sdk.ts', () => ({
  declaresSdk: () => signs.declared,
  watchForSdk: (onSeen: () => void) => {
    signs.onSeen = onSeen;
    return () => {
      signs.onSeen = undefined;
    };
  },
}));

let runtime: Runtime;
let used: MeterProvider[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearInterval', 'performance'] });
  Object.assign(own, { prepared: 0 });
  Object.assign(signs, { declared: false, onSeen: undefined });
  own.start.mockReset();
  own.giveWay.mockReset();
  own.standBack.mockReset();
  runtime = new Runtime(defaultConfig(), 'test', []);
  vi.spyOn(runtime.hooks, 'now').mockImplementation(() => performance.now());
  used = [];
  vi.spyOn(runtime, 'useMeterProvider').mockImplementation((provider) => {
    used.push(provider as MeterProvider);
  });
});

afterEach(() => {
  trace.disable();
  metrics.disable();
  vi.clearAllTimers();
  vi.useRealTimers();
});

const listening = () => channel('tracing:net.server.listen:asyncEnd').publish({});
const registerTracer = () => trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [] }));
const registerMeter = () => {
  const provider = new MeterProvider();
  metrics.setGlobalMeterProvider(provider);
  return provider;
};
const later = (ms: number) => vi.advanceTimersByTimeAsync(ms);

test('nobody else: prepared at once, started when the service listens, and once', async () => {
  expect(await chooseSdk(runtime, {}, 'auto', 'x')).toEqual(['express']);
  expect(own.prepared).toBe(1);
  await later(4_999);
  expect(own.start).not.toHaveBeenCalled();
  listening();
  expect(own.start).toHaveBeenCalledTimes(1);
  listening();
  await later(60_000);
  expect(own.start).toHaveBeenCalledTimes(1);
  expect(signs.onSeen).toBeUndefined();
});

test('a service that listens on nothing: after 5 s', async () => {
  await chooseSdk(runtime, {}, 'auto', 'x');
  await later(4_999);
  expect(own.start).not.toHaveBeenCalled();
  await later(1);
  expect(own.start).toHaveBeenCalledTimes(1);
});

test('an SDK is declared: nothing is prepared; its tracer provider ends the wait', async () => {
  signs.declared = true;
  expect(await chooseSdk(runtime, {}, 'auto', 'x')).toEqual([]);
  listening();
  await later(2_000);
  expect(own.prepared).toBe(0);
  registerTracer();
  await later(500);
  expect(own.prepared).toBe(1);
  expect(own.start).toHaveBeenCalledTimes(1);
});

test('an SDK is declared and never started: after 15 s', async () => {
  signs.declared = true;
  await chooseSdk(runtime, {}, 'auto', 'x');
  listening();
  await later(14_999);
  expect(own.start).not.toHaveBeenCalled();
  await later(1);
  expect(own.start).toHaveBeenCalledTimes(1);
});

test('a tracer provider is there already: what is left is decided when the service listens', async () => {
  registerTracer();
  await chooseSdk(runtime, {}, 'auto', 'x');
  await later(1_000);
  expect(own.prepared).toBe(0);
  listening();
  await later(0);
  expect(own.start).toHaveBeenCalledTimes(1);
});

test('an SDK is being loaded: ours gives way at that moment, and waits', async () => {
  await chooseSdk(runtime, {}, 'auto', 'x');
  signs.onSeen?.();
  expect(own.giveWay).toHaveBeenCalledTimes(1);
  listening();
  await later(10_000);
  expect(own.start).not.toHaveBeenCalled();
  const provider = registerMeter();
  await later(500);
  expect(used).toEqual([provider]);
  expect(own.standBack).toHaveBeenCalledTimes(1);
  await later(60_000);
  expect(own.start).not.toHaveBeenCalled();
});

test('a meter provider that appears is used before the service listens', async () => {
  await chooseSdk(runtime, {}, 'auto', 'x');
  const provider = registerMeter();
  await later(500);
  expect(used).toEqual([provider]);
  listening();
  expect(own.start).not.toHaveBeenCalled();
});

test('a meter provider that is there is used, and nothing is prepared', async () => {
  const provider = registerMeter();
  for (const choice of ['auto', 'on', 'off'] as const) await chooseSdk(runtime, {}, choice, 'x');
  expect(used).toEqual([provider, provider, provider]);
  listening();
  await later(60_000);
  expect(own.prepared).toBe(0);
});

test('on: at once', async () => {
  signs.declared = true;
  expect(await chooseSdk(runtime, {}, 'on', 'x')).toEqual(['express']);
  expect(own.start).toHaveBeenCalledTimes(1);
});

test.each([
  ['off', {}],
  ['auto', { OTEL_SDK_DISABLED: 'true' }],
  ['on', { OTEL_SDK_DISABLED: 'true' }],
] as const)('%s, %j: never, but a meter provider that comes in an hour is used', async (choice, env) => {
  expect(await chooseSdk(runtime, env, choice, 'x')).toEqual([]);
  listening();
  await later(3_600_000);
  expect(own.prepared).toBe(0);
  const provider = registerMeter();
  await later(60_000);
  expect(used).toEqual([provider]);
});
