/**
 * Which span belongs to a call, where an OpenTelemetry instrumentation of the same library makes one. Works with
 * any tracer provider, at whatever time it is registered: the spans are seen where their tracer starts them. An
 * instrumentation starts its span in the same step in which the adapter begins its call, just before or just after
 * it, whichever of the two was loaded first; the two are brought together within that step.
 */
import { type Attributes, type Span, SpanKind, type SpanOptions, type Tracer } from '@opentelemetry/api';
import type { CallRecord } from '../../src/records.ts';
import { activeSpan, registeredTracerProvider } from '../../src/telemetry/otel-globals.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { putOwnMethod } from './own-method.ts';
import { wrapMethods } from './plain-wrap.ts';

/** How an adapter knows its own spans. `Subject` is what it knows a call by: a request, a query. */
export interface SpanSource<Subject> {
  /** Name of the instrumentation whose spans these are, e.g. `@opentelemetry/instrumentation-undici`. */
  readonly scope: string;
  /** Whether a client span that starts with these attributes, under this name, can be that of the subject. */
  matches(subject: Subject, attributes: Attributes, name: string): boolean;
  /** Whether the instrumentation may hear of the end before the adapter, although it was told of the start after it. */
  endsFirst?(subject: Subject): boolean;
  /**
   * The span is about to be ended by an instrumentation that was told first, and the adapter has not ended the call
   * yet: it does so now. `error` is what the instrumentation recorded on the span, undefined for nothing.
   */
  ending(subject: Subject, error: unknown): void;
}

/** The spans of all libraries by their instrumentation's name, and the tracers that tell of them. */
const finders = new Map<string, SpanFinder<unknown>>();
const undos: Undo[] = [];
let seenProvider: unknown;

/** A microtask by `then` costs a fifth of `queueMicrotask`, which makes an async resource for each. */
const SETTLED = Promise.resolve();

export class SpanFinder<Subject> {
  readonly #hooks: Hooks;
  readonly #source: SpanSource<Subject>;
  #awaited: { readonly call: CallRecord; readonly subject: Subject } | undefined;
  #started: { readonly span: Span; readonly attributes: Attributes; readonly name: string } | undefined;
  #clears = false;
  readonly #clear = (): void => {
    this.#clears = false;
    this.#awaited = undefined;
    this.#started = undefined;
  };

  constructor(hooks: Hooks, source: SpanSource<Subject>) {
    this.#hooks = hooks;
    this.#source = source;
  }

  /** Starts looking; returns its undo. */
  start(): Undo {
    const { scope } = this.#source;
    // Each finder gets back only what it has been given itself.
    finders.set(scope, this as SpanFinder<unknown>);
    watchTracers(this.#hooks);
    // A provider that came later, before the first call of which its instrumentation hears before us.
    const undo = this.#hooks.subscribe('http.server.request.start', () => watchTracers(this.#hooks));
    return () => {
      undo();
      if (finders.get(scope) === (this as SpanFinder<unknown>)) finders.delete(scope);
      if (finders.size > 0) return;
      for (const undo of undos.splice(0)) undo();
      seenProvider = undefined;
    };
  }

  /** A call begins: the span that starts in this step, or has started in it, is its own. */
  expect(call: CallRecord, subject: Subject): void {
    watchTracers(this.#hooks);
    const started = this.#started;
    this.#started = undefined;
    if (started !== undefined && this.#source.matches(subject, started.attributes, started.name)) {
      // Its instrumentation hears everything before us, the end as well.
      if (this.#adopt(started.span, call)) this.#endBefore(started.span, call, subject);
      return;
    }
    // Without a tracer nothing will come, and the next call need not be told apart.
    if (seenProvider === undefined) return;
    this.#awaited = { call, subject };
    this.#clearSoon();
  }

  /** A client span of this library, or of an unknown one, has started. Does not throw. */
  started(span: Span, attributes: Attributes, name: string): void {
    this.#hooks.attempt(() => this.#meet(span, attributes, name));
  }

  #meet(span: Span, attributes: Attributes, name: string): void {
    const awaited = this.#awaited;
    if (awaited !== undefined && this.#source.matches(awaited.subject, attributes, name)) {
      const { call, subject } = awaited;
      this.#awaited = undefined;
      if (this.#adopt(span, call) && this.#source.endsFirst?.(subject)) this.#endBefore(span, call, subject);
      return;
    }
    this.#started = { span, attributes, name };
    this.#clearSoon();
  }

  #adopt(span: Span, call: CallRecord): boolean {
    if (!span.isRecording()) return false;
    call.span = span;
    return true;
  }

  /** Only what happens in one step belongs together. */
  #clearSoon(): void {
    if (this.#clears) return;
    this.#clears = true;
    void SETTLED.then(this.#clear);
  }

  /** Puts two methods of its own on this span, which lead to the span's; the end is told to the adapter first. */
  #endBefore(span: Span, call: CallRecord, subject: Subject): void {
    const { end, recordException } = span;
    let error: unknown;
    // The span is kept until it is exported; what belongs to the request must not be.
    let told: { readonly call: CallRecord; readonly subject: Subject } | undefined = { call, subject };
    const tell = this.#hooks.guard(() => {
      const ended = told;
      const cause = error;
      told = undefined;
      error = undefined;
      if (ended?.call.span === span && ended.call.endedAt === undefined)
        this.#source.ending(ended.subject, cause);
    });
    putOwnMethod(
      span,
      'recordException',
      function (this: Span, ...args: Parameters<Span['recordException']>) {
        error = args[0];
        return Reflect.apply(recordException, this, args);
      },
    );
    putOwnMethod(span, 'end', function (this: Span, ...args: Parameters<Span['end']>) {
      tell();
      return Reflect.apply(end, this, args);
    });
  }
}

/** The active span, if it is the client span of this instrumentation and still records. */
export function activeSpanOf(scope: string): Span | undefined {
  const span = activeSpan();
  if (span === undefined || !span.isRecording()) return undefined;
  // Fields of the SDK's spans, not of the API: without them a span is not taken for a client's.
  if (Reflect.get(span, 'kind') !== SpanKind.CLIENT) return undefined;
  return scopeOf(span) === scope ? span : undefined;
}

/** The class of a provider's tracers is wrapped once; a provider that is registered later is seen at the next call. */
function watchTracers(hooks: Hooks): void {
  const provider = registeredTracerProvider();
  if (provider === seenProvider) return;
  seenProvider = provider;
  if (provider === undefined) return;
  const owner = ownerOf(provider.getTracer('otel-time-budget'), 'startSpan');
  if (owner === undefined) return;
  undos.push(
    wrapMethods(owner, {
      after: {
        startSpan(tracer, result, name, options) {
          // The signature of the API: name, options, context; a span comes back.
          const given = options as SpanOptions | undefined;
          if (given?.kind !== SpanKind.CLIENT) return;
          hooks.attempt(() => tell(tracer as Tracer, String(name), given.attributes ?? {}, result as Span));
        },
      },
    }),
  );
}

function tell(tracer: Tracer, name: string, attributes: Attributes, span: Span): void {
  const scope = scopeOf(tracer);
  if (scope !== undefined) {
    finders.get(scope)?.started(span, attributes, name);
    return;
  }
  // A vendor's tracer need not say whose it is; what starts with other attributes matches nobody.
  for (const finder of finders.values()) finder.started(span, attributes, name);
}

/** SDK 2 and 3 say `instrumentationScope`, SDK 1 `instrumentationLibrary`. */
function scopeOf(owner: object): string | undefined {
  const scope: unknown =
    Reflect.get(owner, 'instrumentationScope') ?? Reflect.get(owner, 'instrumentationLibrary');
  const name: unknown = typeof scope === 'object' && scope !== null ? Reflect.get(scope, 'name') : undefined;
  return typeof name === 'string' ? name : undefined;
}

function ownerOf(object: object, method: string): object | undefined {
  let owner: object | null = object;
  while (owner !== null && !Object.hasOwn(owner, method)) owner = Object.getPrototypeOf(owner);
  return owner ?? undefined;
}
