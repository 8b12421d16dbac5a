/** Express's routes as operations: their names, their handlers, and when those are over. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { currentScope, enterScope } from '../../src/current.ts';
import { HandlerWatch } from '../../src/handler-watch.ts';
import type { RequestRecord, Scope } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { watchLateEnd } from '../shared/late-end.ts';

/** What Express puts on its requests. */
export interface ExpressRequest extends IncomingMessage {
  /** The part of the path that mounts have taken off, as it came: with values in place of parameters. */
  readonly baseUrl: string;
}

/** A handler that is about to run. */
export interface HandlerCall {
  readonly watch: HandlerWatch;
  readonly scope: Scope;
  readonly response: ServerResponse;
}

export interface Handler {
  readonly request: ExpressRequest;
  readonly response: ServerResponse;
  readonly handle: { readonly length: number };
  /** What the route was declared with: a string, a RegExp, or several of them. */
  readonly pattern: unknown;
  /** Declared with `all`, which is how checks for many routes are. */
  readonly anyMethod: boolean;
}

export class ExpressRoutes {
  readonly #hooks: Hooks;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  /** Something mounted under `pattern` takes the request; its `baseUrl` has the path taken off already. */
  mounted(request: ExpressRequest, pattern: unknown): void {
    const { baseUrl } = request;
    const record = currentScope()?.request;
    if (baseUrl === '' || pattern === '/' || record === undefined || record.endedAt !== undefined) return;
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
   * undefined: the request is none of ours.
   */
  starts(handler: Handler): HandlerCall | undefined {
    const scope = currentScope();
    if (scope === undefined) return undefined;
    const watch = HandlerWatch.of(scope);
    const call: HandlerCall = { watch, scope, response: handler.response };
    watch.started(call);
    if (scope === watch.outer) enterScope(watch);
    const { request: record } = scope;
    if (record.endedAt !== undefined) return call;
    const operation = `${handler.request.method} ${templateOf(handler, record)}`;
    if (mayPassOn(handler)) {
      record.likelyOperation = operation;
      return call;
    }
    const now = this.#hooks.now();
    this.#hooks.recorder.handling(record, operation, now);
    this.#hooks.recorder.admit(record, now, true);
    return call;
  }

  /** The handler has returned. `pending`: a promise, of whose end `settled` will tell. */
  returned(call: HandlerCall, pending: boolean): void {
    enterScope(call.scope);
    if (pending) return;
    call.watch.returned(call, call.response.writableEnded);
    this.#ended(call);
  }

  settled(call: HandlerCall): void {
    call.watch.settled();
    this.#ended(call);
  }

  #ended({ watch, response }: HandlerCall): void {
    const { request: record } = watch;
    if (record.handlerEndedAt !== undefined) return;
    if (watch.isOver) {
      this.#hooks.recorder.handlerEnded(record, this.#hooks.now());
    } else if (record.endedAt !== undefined && !record.handlerTracked && !response.writableEnded) {
      // Called after the end of its request, by one whose end was still awaited then.
      watchLateEnd(this.#hooks, response, record);
    }
  }
}

/** The templates of what has been mounted so far, by the concrete path that each took off. */
function mountsOf({ routing }: RequestRecord): Map<string, string> | undefined {
  // Nobody but this file keeps a Map there.
  return routing instanceof Map ? (routing as Map<string, string>) : undefined;
}

function templateOf({ request, pattern }: Handler, record: RequestRecord): string {
  const { baseUrl } = request;
  // A path that was taken off by hand is not known as a template, and as it came it is no name.
  const mount = baseUrl === '' ? '' : (mountsOf(record)?.get(baseUrl) ?? '/*');
  return join(mount, pattern);
}

/**
 * A check that is declared as a route, such as `app.all('/api/*', authorise)`, names every request of the routes
 * behind it. It is taken for the operation only where none follows.
 */
function mayPassOn({ handle, pattern, anyMethod }: Handler): boolean {
  // `(request, response)` cannot pass on; `(...args)` can, and has the length 0.
  const canPassOn = handle.length !== 1 && handle.length !== 2;
  return canPassOn && (anyMethod || typeof pattern !== 'string' || pattern.includes('*'));
}

function join(mount: string, pattern: unknown): string {
  const path = typeof pattern === 'string' ? pattern.replace(/\/+$/, '') : String(pattern);
  if (path === '') return mount === '' ? '/' : mount;
  return mount + path;
}
