import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { suppressTracing } from '@opentelemetry/core';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, expect, test } from 'vitest';
import { isOwnTraffic, runAsOwnTraffic } from '../../instrumentation/process/own-traffic.ts';
import { currentScope, runInScope } from '../../src/current.ts';
import type { Scope } from '../../src/records.ts';
import {
  activeSpan,
  isTracingSuppressed,
  registeredMeterProvider,
  registeredTracerProvider,
} from '../../src/telemetry/otel-globals.ts';

afterEach(() => {
  trace.disable();
  metrics.disable();
  context.disable();
});

test('nothing is registered, and asking registers nothing', () => {
  expect(registeredTracerProvider()).toBeUndefined();
  expect(registeredMeterProvider()).toBeUndefined();
  expect(activeSpan()).toBeUndefined();
  expect(isTracingSuppressed()).toBe(false);
  expect(Symbol.for('opentelemetry.js.api.1') in globalThis).toBe(false);
});

test('the providers as the API registers them', () => {
  const provider = new MeterProvider();
  metrics.setGlobalMeterProvider(provider);
  expect(registeredMeterProvider()).toBe(provider);
  expect(registeredTracerProvider()).toBeUndefined();
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [] }));
  expect(registeredTracerProvider()).toBe(trace.getTracerProvider());
});

test('the active span and the suppression as the API and the SDK have them', () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const span = new TracerProvider({ spanProcessors: [] }).getTracer('test').startSpan('x');
  const { active } = { active: context.active() };
  context.with(trace.setSpan(active, span), () => {
    expect(activeSpan()).toBe(trace.getActiveSpan());
    expect(activeSpan()).toBe(span);
    expect(isTracingSuppressed()).toBe(false);
    expect(isOwnTraffic()).toBe(false);
  });
  context.with(suppressTracing(active), () => {
    expect(activeSpan()).toBeUndefined();
    expect(isTracingSuppressed()).toBe(true);
    expect(isOwnTraffic()).toBe(true);
  });
  expect(isOwnTraffic()).toBe(false);
});

test('X-19: an export of ours runs outside of any request, what it starts later too', async () => {
  const scope = {} as Scope;
  await runInScope(scope, async () => {
    const seen = await runAsOwnTraffic(async () => {
      await new Promise((later) => setTimeout(later, 1));
      return { scope: currentScope(), own: isOwnTraffic() };
    });
    expect(seen).toEqual({ scope: undefined, own: true });
    expect(currentScope()).toBe(scope);
    expect(isOwnTraffic()).toBe(false);
  });
});
