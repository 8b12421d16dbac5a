/**
 * Lets requests in up to a limit and keeps some waiting: the time is looked at before a permit is taken and again
 * after the wait, and a permit goes back when the work has really ended. Where the mode of the entry is not `enforce`
 * nobody waits and nobody is refused: what would have been is counted.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { activeRecorder } from '../active.ts';
import { decideAllowance } from '../core/allowance.ts';
import { timerMs } from '../core/deadline.ts';
import { PRIORITIES, type QueueResult } from '../core/terms.ts';
import { WaitQueue } from '../core/wait-queue.ts';
import { currentScope } from '../current.ts';
import { guarded } from '../guarded.ts';
import type { Watched } from '../load-recorder.ts';
import type { Recorder } from '../recorder.ts';
import type { RequestRecord } from '../records.ts';
import { createGateCells, type GateCells } from './gate-cells.ts';
import { describeEntry, describeRefusal } from './gate-span.ts';
import type { CheckedOptions } from './options.ts';
import { Permit } from './permit.ts';
import { QueueModel } from './queue-model.ts';
import { readOverQuota } from './quota.ts';
import { type Answered, dispositionOf, type Refusal, refusalOf, retryAfterS } from './refusal.ts';

/** A timer armed inside a request would keep that request's state alive. */
const atRoot = AsyncLocalStorage.snapshot();

export class Gate implements Watched {
  readonly kind = 'queue';
  readonly madeBy = 'admission';
  readonly name: string;
  readonly #options: CheckedOptions;
  readonly #queue: WaitQueue<Permit>;
  #recorder: Recorder | undefined;
  #cells: GateCells | undefined;
  #model: QueueModel | undefined;
  readonly #onSettled = (permit: Permit, now: number): void => this.#settle(permit, now);
  #held = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When it fires. */
  #timerAt = Infinity;

  constructor(options: CheckedOptions) {
    this.name = options.name;
    this.#options = options;
    this.#queue = new WaitQueue(options.size);
  }

  connect(recorder: Recorder): void {
    this.#recorder = recorder;
    const { limit, maxAgeMs } = this.#options;
    this.#cells = createGateCells(recorder, this.name, limit, maxAgeMs);
    this.#model = new QueueModel(recorder, this.name);
  }

  refresh(now: number): void {
    if (this.#cells === undefined) return;
    this.#cells.depth.value = this.#queue.depth;
    for (const priority of PRIORITIES) {
      const oldestAt = this.#queue.oldestAt(priority);
      this.#cells.oldest(priority).value = oldestAt === undefined ? 0 : (now - oldestAt) / 1_000;
    }
    const { depth, entered, repeats, left } = this.#cells;
    const completed = left('started').value;
    this.#model?.read(
      { waiting: depth.value, entered: entered.value, repeats: repeats.value, completed },
      now,
    );
  }

  /**
   * Calls one of the two, in the context of the request that asks: `go` at once or after the wait, or `refuse`. True
   * where it waits. Without a request that the package sees, and where it is not started, everything is let in.
   */
  enter(go: () => void, refuse: (refusal: Refusal) => void): boolean {
    const answer = guarded(() => this.#ask(go, refuse)) ?? 'go';
    // Not under the guard: what it throws is the service's.
    if (answer === 'go') go();
    else if (answer !== 'wait') refuse(answer);
    return answer === 'wait';
  }

  #ask(go: () => void, refuse: (refusal: Refusal) => void): 'go' | 'wait' | Refusal {
    const recorder = activeRecorder();
    const scope = currentScope();
    if (recorder === undefined || recorder !== this.#recorder || scope === undefined) return 'go';
    const { request } = scope;
    if (scope.detached || request.endedAt !== undefined) return 'go';
    const now = recorder.clock.now();
    if (request.operation !== undefined) recorder.admit(request, now, true);
    const isEnforced = recorder.config.entry.mode === 'enforce';
    const permit = new Permit(request, now, this.#dueAt(recorder, request, now), this.#onSettled);
    const overQuotaMs = readOverQuota(this.#options.overQuotaMs, () =>
      recorder.families.internalErrors.cell().add(1),
    );
    const why = this.#whyNot(recorder, permit, overQuotaMs, isEnforced, now);
    if (why !== undefined) this.#count(recorder, permit, why, isEnforced, now);
    if (!isEnforced || permit.state === 'held') {
      this.#grant(recorder, permit, isEnforced);
      permit.hold();
      return 'go';
    }
    if (why !== undefined) {
      request.disposition = dispositionOf(why);
      return refusalOf(why, retryAfterS(why, overQuotaMs, this.#options.retryAfterS));
    }
    permit.wait(go, refuse);
    request.disposition = { kind: 'waiting' };
    this.#cells?.entered.add(1);
    if (request.repeated) this.#cells?.repeats.add(1);
    if (permit.dueAt < this.#timerAt) this.#arm(now);
    return 'wait';
  }

  /** undefined: it holds a permit, or has its place in the queue. */
  #whyNot(
    recorder: Recorder,
    permit: Permit,
    overQuotaMs: number | undefined,
    isEnforced: boolean,
    now: number,
  ): Answered | undefined {
    if (overQuotaMs !== undefined) return 'quota';
    const outOfTime = this.#outOfTime(recorder, permit.request, now);
    if (outOfTime !== undefined) return outOfTime;
    const { limit, size } = this.#options;
    if (this.#held < limit) {
      permit.state = 'held';
      return undefined;
    }
    // Nobody waits in `observe`: as many as would are in already.
    if (!isEnforced) return this.#held < limit + size ? undefined : 'concurrency';
    const place = this.#queue.push(permit);
    if (place === false) return 'concurrency';
    if (place !== true) this.#drop(recorder, place, 'replaced', 'concurrency', now);
    return undefined;
  }

  #outOfTime(recorder: Recorder, request: RequestRecord, now: number): Answered | undefined {
    const { refusal } = decideAllowance({
      remainingMs: request.remainingMs(now),
      reserveMs: recorder.config.reserveMsFor(request.operation, undefined),
      minimumMs: this.#options.minimumMs,
    });
    // The only two that an allowance is refused for.
    return refusal as Extract<Answered, typeof refusal> | undefined;
  }

  /** When it is of no use any more that it waits. */
  #dueAt(recorder: Recorder, request: RequestRecord, now: number): number {
    const reserveMs = recorder.config.reserveMsFor(request.operation, undefined);
    return Math.min(now + this.#options.maxAgeMs, request.deadlineAt - reserveMs);
  }

  #grant(recorder: Recorder, permit: Permit, isEnforced: boolean): void {
    this.#held++;
    this.#cells?.used.add(1);
    this.#cells?.executing.add(1);
    permit.state = 'held';
    // In `observe` the gate decides nothing.
    if (isEnforced) recorder.load.grant(permit.request);
  }

  #settle(permit: Permit, now: number): void {
    const { request } = permit;
    const recorder = this.#recorder;
    if (recorder === undefined || request.endedAt === undefined) return;
    if (permit.state === 'waiting') {
      this.#queue.remove(permit);
      permit.state = 'over';
      // Without a cancel it has its answer, of a timeout's middleware for instance: nobody left, and the gate refused nothing.
      const isGone = request.cancelSource !== undefined;
      this.#left(permit, isGone ? 'caller_gone' : 'deleted', now);
      if (isGone) this.#cells?.refused('caller_gone', true).add(1);
      return;
    }
    const isOver = request.isOver;
    if (permit.state === 'held' && (isOver || this.#options.releaseAt === 'answer')) {
      permit.state = 'released';
      this.#held--;
      this.#cells?.used.add(-1);
      this.#serve(recorder, now);
    }
    if (permit.state === 'released' && isOver) {
      permit.state = 'over';
      this.#cells?.executing.add(-1);
    }
  }

  /** Gives what is free to those who wait. Whoever's time is up leaves at the head, before its handler. */
  #serve(recorder: Recorder, now: number): void {
    while (this.#held < this.#options.limit) {
      const permit = this.#queue.shift();
      if (permit === undefined) return;
      const why = this.#whyDue(recorder, permit, now);
      if (why !== undefined) {
        this.#drop(recorder, permit, why === 'queue_age' ? 'too_old' : 'expired', why, now);
        continue;
      }
      const { request } = permit;
      request.disposition = undefined;
      request.waited(now);
      this.#left(permit, 'started', now);
      this.#grant(recorder, permit, true);
      describeEntry(request, this.name, now - permit.enteredAt);
      permit.go();
    }
  }

  #whyDue(recorder: Recorder, permit: Permit, now: number): Answered | undefined {
    const outOfTime = this.#outOfTime(recorder, permit.request, now);
    return outOfTime ?? (now - permit.enteredAt >= this.#options.maxAgeMs ? 'queue_age' : undefined);
  }

  #drop(recorder: Recorder, permit: Permit, result: QueueResult, why: Answered, now: number): void {
    permit.state = 'over';
    permit.request.waited(now);
    this.#left(permit, result, now);
    this.#count(recorder, permit, why, true, now);
    permit.request.disposition = dispositionOf(why);
    permit.refuse(refusalOf(why, retryAfterS(why, undefined, this.#options.retryAfterS)));
  }

  #left(permit: Permit, result: QueueResult, now: number): void {
    this.#cells?.left(result).add(1);
    this.#cells?.age(permit.priority).recordMs(now - permit.enteredAt);
  }

  #count(recorder: Recorder, permit: Permit, why: Answered, isEnforced: boolean, now: number): void {
    this.#cells?.refused(why, isEnforced).add(1);
    describeRefusal(permit.request, why, {
      queue: this.name,
      waitedMs: now - permit.enteredAt,
      mode: recorder.config.entry.mode,
      now,
    });
  }

  /** One timer for the queue. It may fire early, so the clock decides. */
  #arm(now: number): void {
    clearTimeout(this.#timer);
    const dueAt = this.#queue.nextDueAt();
    this.#timerAt = dueAt;
    if (dueAt === Infinity) return;
    atRoot(() => {
      this.#timer = setTimeout(() => this.#sweep(), Math.max(1, timerMs(dueAt - now)));
      this.#timer.unref();
    });
  }

  #sweep(): void {
    const recorder = this.#recorder;
    if (recorder === undefined) return;
    const now = recorder.clock.now();
    this.#timerAt = Infinity;
    for (const permit of this.#queue.takeDue(now)) {
      const why = this.#whyDue(recorder, permit, now) ?? 'queue_age';
      this.#drop(recorder, permit, why === 'queue_age' ? 'too_old' : 'expired', why, now);
    }
    this.#arm(now);
  }
}
