import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { Answer } from '../../demo/caller.ts';
import { readHops } from '../../demo/hops.ts';
import type { Span } from '../../demo/otlp-receiver.ts';
import { type Line, plainText } from '../../demo/page.ts';
import { drawWaterfall } from '../../demo/waterfall.ts';

// The spans of one real request of the demo: inventory 1000 ms slower than usual, 600 ms given.
const { answer, spans } = JSON.parse(
  readFileSync(new URL('./slow-dependency.json', import.meta.url), 'utf8'),
) as { readonly answer: Answer; readonly spans: readonly Span[] }; // As it was recorded.
const hops = readHops(spans, answer.sentAt);

describe('hops from spans', () => {
  test('outermost first, with what each was given, how it ended and why', () => {
    expect(hops.map((hop) => [hop.service, hop.receivedMs, hop.outcome, hop.expiryPhase, hop.cause])).toEqual(
      [
        ['gateway', 600, 'expired', 'request', 'slow_dependency'],
        ['orders', 594, 'late', 'request', 'slow_dependency'],
        ['inventory', 588, 'late', 'local', 'spent_before_call'],
      ],
    );
  });

  test('a hop begins where its budget did: its end, less what it spent', () => {
    const [gateway] = hops;
    expect(gateway?.fromMs).toBeCloseTo(612.566 - (600 - -6.412), 6);
    expect(gateway?.deadlineMs).toBeCloseTo(606.154, 6);
  });

  test('work that outlives its request is measured from when it was of no use', () => {
    expect(hops.map((hop) => Math.round(hop.wentOnMs))).toEqual([546, 546, 543]);
    expect(hops.map((hop) => Math.round(hop.postCancelMs))).toEqual([546, 541, 0]);
  });

  test('its own time is what no call covers, parallel calls counted once', () => {
    const orders = hops[1];
    const rounded = orders?.own.map(({ phase, fromMs, toMs }) => [
      phase,
      Math.round(fromMs),
      Math.round(toMs),
    ]);
    expect(rounded).toEqual([
      ['queue', 7, 9],
      ['local', 9, 10],
      ['local', 10, 11],
      ['local', 1143, 1147],
    ]);
  });
});

describe('the picture', () => {
  const draw = (width: number): string[] => drawWaterfall(answer, hops, width).map(plainText);

  test('a row per hop and phase, the deadline through all of them', () => {
    expect(draw(100)).toEqual([
      '                             0                         ▼ deadline         1152 ms     took     left',
      '  caller         gave 600 ms ━━━━━━━━━━━━━━━━━━━━━━━━━━━                            602 ms  -1.8 ms',
      '  gateway         got 600 ms ───────────────────────────┄                           606 ms  -6.4 ms',
      '    request → orders         ███████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░   1140 ms',
      '  orders          got 594 ms ───────────────────────────┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄   1140 ms  -546 ms',
      '    request → inventory      ███████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░   1131 ms',
      '  inventory       got 588 ms ───────────────────────────┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄   1131 ms  -543 ms',
      '    local                     ██████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░   1122 ms',
    ]);
  });

  test('it keeps to its width', () => {
    for (const width of [80, 100, 140])
      expect(Math.max(...draw(width).map((line) => line.length))).toBeLessThan(width);
  });

  test('a deadline far beyond the end does not squeeze the bars', () => {
    const lines = drawWaterfall({ ...answer, budgetMs: 5000 }, hops, 100).map(plainText);
    expect(lines[0]).toContain('deadline at 5000 ms →');
    expect(lines.filter((line) => line.includes('│'))).toEqual([]);
  });

  test('what is over is red', () => {
    const isRed = (line: Line | undefined) => line?.some(({ style }) => style === 'red');
    const lines = drawWaterfall(answer, hops, 100);
    expect([isRed(lines[0]), isRed(lines[2]), isRed(lines[3])]).toEqual([false, true, true]);
  });
});
