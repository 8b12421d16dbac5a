import { describe, expect, test } from 'vitest';
import { phaseIndex } from '../../src/core/call.ts';
import { Ledger } from '../../src/core/ledger.ts';
import { PHASES, type Phase } from '../../src/core/terms.ts';
import { decideCause, type Evidence } from '../../src/core/verdict.ts';

const USUAL_50 = { medianMs: 50, p95Ms: 80 };

interface Story {
  readonly queueMs?: number;
  readonly localMs?: number;
  readonly eventLoopMs?: number;
  /** Milliseconds by dependency and phase. */
  readonly terms?: Readonly<Record<string, Partial<Record<Phase, number>>>>;
  readonly slowestMs?: Readonly<Record<string, number>>;
}

function ledger(story: Story): Ledger {
  const made = new Ledger(500);
  made.queueMs = story.queueMs ?? 0;
  made.localMs = story.localMs ?? 0;
  made.eventLoopMs = story.eventLoopMs ?? 0;
  for (const [dependency, phases] of Object.entries(story.terms ?? {})) {
    const phaseMs = PHASES.map((phase) => phases[phase] ?? 0);
    const served = phaseMs.reduce((sum, ms) => sum + ms, 0) - (phaseMs[phaseIndex('pool_wait')] ?? 0);
    const slowestMs = story.slowestMs?.[dependency] ?? served;
    made.terms = [...made.terms, { dependency, phaseMs, slowestMs }];
  }
  return made;
}

function cause(story: Story, evidence: Partial<Omit<Evidence, 'ledger'>> = {}): string {
  const made = ledger(story);
  return decideCause({
    ledger: made,
    effectiveMs: 500,
    overrunMs: 100,
    spentBeforeFirstCallMs: made.queueMs,
    loopBlockedMs: made.eventLoopMs,
    operationTypical: { medianMs: 120, p95Ms: 200 },
    dependencyTypical: () => USUAL_50,
    ...evidence,
  });
}

describe('the verdict on an expiry', () => {
  test('rule 1: blocked for the greater part of what this process spent', () => {
    expect(cause({ queueMs: 10, localMs: 500, terms: { a: { request: 40 } } }, { loopBlockedMs: 480 })).toBe(
      'event_loop',
    );
    expect(cause({ localMs: 20, eventLoopMs: 400, terms: { a: { request: 40 } } })).toBe('event_loop');
  });

  test('rule 1 does not blame two busy milliseconds for a slow dependency', () => {
    expect(cause({ localMs: 2, terms: { a: { request: 590 } } }, { loopBlockedMs: 2 })).toBe(
      'slow_dependency',
    );
  });

  test('rule 1 does not blame a block that would not have made the difference, where the caller cut it off', () => {
    // Usual 120, given 60: without the block it would still have lacked 60.
    const given = { effectiveMs: 60, overrunMs: 1, spentBeforeFirstCallMs: 5 };
    const story = { queueMs: 65, terms: { a: { request: 70 } } };
    expect(cause(story, { ...given, loopBlockedMs: 60 })).toBe('caller_budget_too_small');
    expect(cause(story, { ...given, loopBlockedMs: 61 })).toBe('event_loop');
    const asLargest = { queueMs: 65, terms: { a: { request: 20 } } };
    expect(cause(asLargest, { ...given, loopBlockedMs: 60 })).toBe('caller_budget_too_small');
    expect(cause(asLargest, { ...given, loopBlockedMs: 61 })).toBe('event_loop');
  });

  test('rule 2: less than the operation usually takes, and nobody slower than usual', () => {
    const story = { localMs: 5, terms: { a: { request: 60 } } };
    expect(cause(story, { effectiveMs: 60, overrunMs: 5 })).toBe('caller_budget_too_small');
    expect(cause(story, { effectiveMs: 119.9, overrunMs: 5 })).toBe('caller_budget_too_small');
    expect(cause(story, { effectiveMs: 120, overrunMs: 5 })).not.toBe('caller_budget_too_small');
  });

  test('T-31: a small budget with a slow dependency is the dependency', () => {
    expect(cause({ terms: { a: { request: 118 } } }, { effectiveMs: 110, overrunMs: 8 })).toBe(
      'slow_dependency',
    );
  });

  test('a slow dependency excuses the caller only if it made the difference: 60 lacked, 60 or 61 slower', () => {
    expect(cause({ terms: { a: { request: 110 } } }, { effectiveMs: 60 })).toBe('caller_budget_too_small');
    expect(cause({ terms: { a: { request: 111 } } }, { effectiveMs: 60 })).toBe('slow_dependency');
  });

  test('slower means above the p95 by a fifth and by 10 ms: 96 ms is usual, 97 is not', () => {
    expect(cause({ terms: { a: { request: 96 } } }, { effectiveMs: 119 })).toBe('caller_budget_too_small');
    expect(cause({ terms: { a: { request: 97 } } }, { effectiveMs: 119 })).toBe('slow_dependency');
  });

  test('rule 3: more than half gone before the first call', () => {
    const story = { queueMs: 300, terms: { a: { request: 250 } } };
    expect(cause(story, { spentBeforeFirstCallMs: 251 })).toBe('spent_before_call');
    expect(cause(story, { spentBeforeFirstCallMs: 250 })).not.toBe('spent_before_call');
  });

  test('rule 3 without any call: queue and local together', () => {
    expect(cause({ queueMs: 200, localMs: 400 }, { spentBeforeFirstCallMs: undefined })).toBe(
      'spent_before_call',
    );
  });

  test('rule 4: the wait for a pool is the largest term, and is not the time of the dependency', () => {
    expect(cause({ localMs: 5, terms: { db: { pool_wait: 450, db_execution: 60 } } })).toBe('pool_saturated');
  });

  test('rule 5: backoff is the largest term', () => {
    expect(cause({ localMs: 5, terms: { a: { backoff: 300, request: 60 } } })).toBe('retries');
  });

  test('rule 6: the largest term is slower than usual', () => {
    expect(cause({ terms: { a: { response: 500 }, b: { request: 40 } } })).toBe('slow_dependency');
  });

  test('rule 7: nothing is known of the dependency', () => {
    expect(cause({ terms: { a: { request: 500 } } }, { dependencyTypical: () => undefined })).toBe(
      'undetermined',
    );
  });

  test('rule 7: many usual calls one after another', () => {
    expect(cause({ terms: { a: { request: 600 } }, slowestMs: { a: 70 } })).toBe('undetermined');
  });
});
