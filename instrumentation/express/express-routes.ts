/** Express's routes as operations: their names, their handlers, and when those are over. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { currentScope, enterScope } from '../../src/current.ts';
import { HandlerWatch } from '../../src/handler-watch.ts';
import type { RequestRecord, Scope } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import { watchLateEnd } from '../shared/late-end.ts';

/** What Express puts on its requests. */
export interface ExpressRequest extends IncomingMessage {
  /** The part of the path that mounts have taken off, as it came: with values in place of parameters. */
  readonly baseUrl: string;
}

/** Ours on a run. A WeakMap is dear here. */
const SCOPE = Symbol('otel-time-budget.scope');

/** One run of a handler of a route: what the router's channel tells of it, under its names. */
export interface HandlerRun {
  readonly req: ExpressRequest;
  readonly res: ServerResponse;
  /** `method` is undefined where the route was declared with `all`, which is how checks for many routes are. */
  readonly layer: { readonly method?: string | undefined };
  readonly handler: { readonly length: number };
  /** What the route was declared with: a string, a RegExp, or several of them. */
  readonly route: unknown;
  /** What it was called in; absent where the request is none of ours. */
  [SCOPE]?: Scope;
}

/** What the last request of a handler was called: mostly, what the next one is called. */
interface RouteName {
  readonly method: string | undefined;
  readonly mount: string;
  readonly pattern: unknown;
  readonly operation: string;
}

export class ExpressRoutes {
  readonly #hooks: Hooks;
  /** By the layer of the handler. */
  readonly #names = attached<object, RouteName>();

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  /** Something mounted under `pattern` takes the request; its `baseUrl` has the path taken off already. */
  mounted(request: ExpressRequest, pattern: unknown): void {
    const { baseUrl } = request;
    if (baseUrl === '' || pattern === '/') return;
    const record = currentScope()?.request;
    if (record === undefined || record.endedAt !== undefined) return;
    const templates = mountsOf(record) ?? new Map<string, string>();
    record.routing = templates;
    let outer = '';
    for (const base of templates.keys()) {
      if (base.length > outer.length && base.length < baseUrl.length && baseUrl.startsWith(base))
        outer = base;
    }
    templates.set(baseUrl, join(templates.get(outer) ?? '', pattern));
  }

  /**
   * A handler of a route starts, in a scope of its own, by which a reply from outside of it can be told.
   * false: the request is none of ours.
   */
  starts(run: HandlerRun): boolean {
    const scope = currentScope();
    if (scope === undefined) return false;
    const watch = HandlerWatch.of(scope);
    run[SCOPE] = scope;
    watch.started(run);
    if (scope === watch.outer) enterScope(watch);
    const { request: record } = scope;
    if (record.endedAt !== undefined) return true;
    const operation = this.#operationOf(run, record);
    if (mayPassOn(run)) {
      record.likelyOperation = operation;
      return true;
    }
    const now = this.#hooks.now();
    this.#hooks.recorder.handling(record, operation, now);
    this.#hooks.recorder.admit(record, now, true);
    return true;
  }

  /** The handler has returned. `pending`: a promise, of whose end `settled` will tell. */
  returned(run: HandlerRun, pending: boolean): void {
    const scope = run[SCOPE];
    if (scope === undefined) return;
    // What runs next in this step is whoever called the handler, such as a middleware after its `next()`.
    if (currentScope() !== scope) enterScope(scope);
    if (pending) return;
    const watch = HandlerWatch.of(scope);
    watch.returned(run, run.res.writableEnded);
    this.#ended(watch, run.res);
  }

  settled(run: HandlerRun): void {
    const scope = run[SCOPE];
    if (scope === undefined) return;
    const watch = HandlerWatch.of(scope);
    watch.settled();
    this.#ended(watch, run.res);
  }

  #ended(watch: HandlerWatch, response: ServerResponse): void {
    const { request: record } = watch;
    if (record.handlerEndedAt !== undefined) return;
    if (watch.isOver) {
      this.#hooks.recorder.handlerEnded(record, this.#hooks.now());
    } else if (record.endedAt !== undefined && !record.handlerTracked && !response.writableEnded) {
      // Called after the end of its request, by one whose end was still awaited then.
      watchLateEnd(this.#hooks, response, record);
    }
  }

  #operationOf({ req, layer, route: pattern }: HandlerRun, record: RequestRecord): string {
    const { method } = req;
    const mount = mountOf(req, record);
    const last = this.#names.get(layer);
    if (last !== undefined && last.method === method && last.mount === mount && last.pattern === pattern)
      return last.operation;
    const operation = `${method} ${join(mount, pattern)}`;
    this.#names.set(layer, { method, mount, pattern, operation });
    return operation;
  }
}

/** The templates of what has been mounted so far, by the concrete path that each took off. */
function mountsOf({ routing }: RequestRecord): Map<string, string> | undefined {
  // Nobody but this file keeps a Map there.
  return routing instanceof Map ? (routing as Map<string, string>) : undefined;
}

function mountOf({ baseUrl }: ExpressRequest, record: RequestRecord): string {
  // A path that was taken off by hand is not known as a template, and as it came it is no name.
  return baseUrl === '' ? '' : (mountsOf(record)?.get(baseUrl) ?? '/*');
}

/**
 * A check that is declared as a route, such as `app.all('/api/*', authorise)`, names every request of the routes
 * behind it. It is taken for the operation only where none follows.
 */
function mayPassOn({ handler, route: pattern, layer }: HandlerRun): boolean {
  // `(request, response)` cannot pass on; `(...args)` can, and has the length 0.
  if (handler.length === 1 || handler.length === 2) return false;
  return layer.method === undefined || typeof pattern !== 'string' || pattern.includes('*');
}

function join(mount: string, pattern: unknown): string {
  const path = typeof pattern === 'string' ? withoutEnd(pattern) : String(pattern);
  if (path === '') return mount === '' ? '/' : mount;
  return mount + path;
}

function withoutEnd(pattern: string): string {
  return pattern.endsWith('/') ? pattern.replace(/\/+$/, '') : pattern;
}
