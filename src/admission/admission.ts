/** A gate in the shapes that servers take: Express, Fastify, and a handler of node:http. No framework is imported. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { activeRecorder } from '../active.ts';
import { currentScope } from '../current.ts';
import { watch } from '../load-recorder.ts';
import { Gate } from './gate.ts';
import { type AdmissionOptions, checkOptions } from './options.ts';
import { answerFastify, answerRaw, type FastifyReply, type RawResponse } from './refusal.ts';

export interface Admission {
  /** Middleware of Express, before the routes or in one: `app.use(gate.express)`. */
  readonly express: (request: unknown, response: RawResponse, next: () => void) => void;
  /** Hook of Fastify: `fastify.addHook('onRequest', gate.fastify)`. */
  readonly fastify: (request: unknown, reply: FastifyReply, done: () => void) => void;
  /** `http.createServer(gate.handler(handler))`. Where it gives a promise, that is when the work has ended. */
  readonly handler: <Request = IncomingMessage, Response extends RawResponse = ServerResponse>(
    handler: (request: Request, response: Response) => unknown,
  ) => (request: Request, response: Response) => unknown;
}

/**
 * Lets at most `limit` requests be worked on at a time and at most `queue.size` wait, each for `queue.maxAgeMs` at the
 * longest and never past its own deadline. What is not let in is answered 503, 429 or 504 as `application/problem+json`
 * with a `reason`. Refuses only where the mode of the entry is `enforce`; elsewhere it counts what it would have done
 * and lets everything in at once.
 *
 * Throws RangeError for an option out of its bounds, and for a name that is taken.
 */
export function admission(options: AdmissionOptions): Admission {
  const gate = new Gate(checkOptions(options));
  watch(gate);
  return {
    express: (_request, response, next) => {
      gate.enter(
        // Express takes what is given to `next` for an error or a word of its own.
        () => next(),
        (refusal) => answerRaw(response, refusal),
      );
    },
    fastify: (_request, reply, done) => {
      gate.enter(
        () => done(),
        (refusal) => answerFastify(reply, refusal),
      );
    },
    handler: (handler) => (request, response) => {
      let result: unknown;
      let follow: ((result: unknown) => void) | undefined;
      const isWaiting = gate.enter(
        () => {
          result = run(handler, request, response);
          follow?.(result);
        },
        (refusal) => answerRaw(response, refusal),
      );
      // Who listens with `captureRejections` answers for what is rejected, after the wait as well.
      if (!isWaiting) return result;
      return new Promise((resolve) => {
        follow = resolve;
      });
    },
  };
}

/** Runs the handler and tells when its promise has settled, which a plain server does not; gives what it gives. */
function run<Request, Response>(
  handler: (request: Request, response: Response) => unknown,
  request: Request,
  response: Response,
): unknown {
  const record = currentScope()?.request;
  const result = handler(request, response);
  if (record === undefined || !(result instanceof Promise)) return result;
  record.handlerTracked = true;
  // Its rejection is whose it was, mostly nobody's, and then ends the process as it would without us.
  return result.finally(() => {
    const recorder = activeRecorder();
    recorder?.handlerEnded(record, recorder.clock.now());
  });
}
