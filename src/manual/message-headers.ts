import { activeRecorder } from '../active.ts';
import { HEADER_TIME_BUDGET } from '../core/wire-time-budget.ts';
import { currentScope } from '../current.ts';
import { guarded } from '../guarded.ts';

export type MessageHeaders = { readonly [HEADER_TIME_BUDGET]?: string };

/**
 * What to put on a message that is sent now, from within a request: what is left, rounded down, and what the consumer
 * should know of its sender. Ask just before the send. Nothing outside a request, in `detach()`, where the package was
 * not started, or where its header is switched off.
 */
export function messageHeaders(): MessageHeaders {
  const scope = currentScope();
  const recorder = activeRecorder();
  if (scope === undefined || scope.detached || recorder === undefined) return {};
  if (!recorder.config.propagation.header) return {};
  const text = guarded(
    () => recorder.carriage?.renderMessage(scope, recorder.clock.now(), Date.now()),
    recorder,
  );
  return text === undefined ? {} : { [HEADER_TIME_BUDGET]: text };
}
