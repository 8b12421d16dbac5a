/**
 * What the process has registered with the OpenTelemetry API, whichever copy of the API registered it. The API
 * itself hides what an older minor version registered (1.10 does not see 1.9, which the 2.x SDKs use), and it
 * cannot tell a missing provider from one that does nothing.
 */
import type { Context, ContextManager, MeterProvider, Span, TracerProvider } from '@opentelemetry/api';

/** The place and the keys are the same in every version 1 of the API; a test holds them against it. */
const API = Symbol.for('opentelemetry.js.api.1');
const SPAN = Symbol.for('OpenTelemetry Context Key SPAN');
const SUPPRESSED = Symbol.for('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

interface Registered {
  readonly [API]?: {
    readonly trace?: TracerProvider;
    readonly metrics?: MeterProvider;
    readonly context?: ContextManager;
  };
}
// Nothing but the API's own place is read.
const registered = globalThis as Registered;

/** The registered tracer provider; undefined where there is none. */
export function registeredTracerProvider(): TracerProvider | undefined {
  return registered[API]?.trace;
}

/** The registered meter provider; undefined where there is none. */
export function registeredMeterProvider(): MeterProvider | undefined {
  return registered[API]?.metrics;
}

/** Whether there is anything that knows an active span. */
export function hasContextManager(): boolean {
  return registered[API]?.context !== undefined;
}

/** The span of the running code, recording or not. */
export function activeSpan(): Span | undefined {
  // The key is the API's own: what stands there is a span.
  return activeContext()?.getValue(SPAN) as Span | undefined;
}

/** Whether the running code is an SDK's own, exporting. */
export function isTracingSuppressed(): boolean {
  return activeContext()?.getValue(SUPPRESSED) === true;
}

function activeContext(): Context | undefined {
  return registered[API]?.context?.active();
}
