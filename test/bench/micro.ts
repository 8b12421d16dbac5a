/** Single steps of ours in a loop, in nanoseconds: hot and monomorphic, so a lower bound of what they cost. */
import { loopIdleMs, loopWaitMs } from '../../instrumentation/process/loop-clock.ts';
import { readBudget } from '../../src/core/received.ts';
import { formatTimeBudget } from '../../src/core/wire-time-budget.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import { Recorder } from '../../src/recorder.ts';
import { releaseSignal, signalOf } from '../../src/scope-signal.ts';
import { defaultConfig } from '../../src/telemetry/config.ts';
import { answer } from './child.ts';
import { type Spread, spread } from './statistics.ts';

export interface Step {
  readonly name: string;
  readonly ns: Spread;
}

const now = () => performance.now();
const recorder = new Recorder(defaultConfig(), { now, waitMs: loopWaitMs, idleMs: loopIdleMs });

const USUAL_HEADERS = { host: 'orders', 'user-agent': 'node', accept: '*/*', 'accept-encoding': 'gzip' };
const OUR_HEADERS = { ...USUAL_HEADERS, 'time-budget': 'remaining=749, attempt=1, caller=checkout' };
const FACTS = { remoteAddress: '127.0.0.1', method: 'GET', path: '/orders/7' };
const TRUSTED = { trusted: true };

const target = recorder.calls.target('orders', 80, 'http');
/** Long enough not to be over before the steps are. */
const LONG_HEADERS = { 'time-budget': 'remaining=3600000' };
const request = recorder.enter({ ...FACTS, headers: LONG_HEADERS }, now());
recorder.handling(request, 'GET /orders/:id', now());

/** As the adapters do it, with a clock read per event. */
function recordHello(headers: Readonly<Record<string, string>>): void {
  const at = now();
  const record = recorder.enter({ ...FACTS, headers }, at);
  enterScope(record);
  recorder.handling(record, undefined, at);
  recorder.finish(record, { completed: true, status: 200 }, now());
}

function recordCall(): void {
  const beganAt = now();
  const call = recorder.calls.begin(target, beganAt);
  call.enter('pool_wait', beganAt);
  const sentAt = now();
  recorder.calls.dispatch(call, sentAt);
  call.enter('request', sentAt);
  const answeredAt = now();
  call.enter('response', answeredAt, loopWaitMs(answeredAt));
  const endedAt = now();
  recorder.calls.end(call, 'answered', endedAt, loopWaitMs(endedAt));
}

const STEPS: Readonly<Record<string, () => unknown>> = {
  'read the headers of a request without a budget': () => readBudget(USUAL_HEADERS, TRUSTED),
  'read our own header': () => readBudget(OUR_HEADERS, TRUSTED),
  'write our own header': () => formatTimeBudget({ remainingMs: 749.3, attempt: 1, caller: 'checkout' }),
  'record a whole request without a budget or calls': () => recordHello(USUAL_HEADERS),
  'record a whole request with a budget, without calls': () => recordHello(OUR_HEADERS),
  'record a call of four phases, from begin to end': recordCall,
  'make a signal for the deadline and take it back': () => {
    const made = signalOf(request, now);
    releaseSignal(request);
    return made;
  },
};

/** Kept so that no step can be taken for one without effect. */
let kept: unknown;

function time(step: () => unknown, count: number): number {
  const startedAt = now();
  for (let i = 0; i < count; i++) kept = step();
  return ((now() - startedAt) * 1e6) / count;
}

const answers = {
  /** Each step `repeats` times `count`; the first two repeats warm up and are dropped. */
  steps(repeats: number, count: number): Step[] {
    return Object.entries(STEPS).map(([name, step]) => {
      const ns: number[] = [];
      runInScope(request, () => {
        for (let i = 0; i < repeats + 2; i++) ns.push(time(step, count));
      });
      return { name, ns: spread(ns.slice(2)) };
    });
  },
  kept() {
    return kept !== undefined;
  },
};
export type MicroAnswers = typeof answers;

answer(answers);
