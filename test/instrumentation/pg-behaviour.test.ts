/** Observing changes nothing, alone and beside OpenTelemetry's instrumentation, whichever of the two came first. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { ATTR } from '../../src/telemetry/names.ts';
import { usePostgres } from '../support/postgres.ts';
import type { PgReport } from './pg-child.ts';

const CHILD = fileURLToPath(new URL('./pg-child.ts', import.meta.url));
const postgres = usePostgres();
const reports = new Map<string, PgReport>();

beforeAll(async () => {
  for (const names of [
    '',
    'ours',
    'theirs',
    'theirs ours',
    'ours theirs',
    'ours again',
    'theirs ours again',
  ]) {
    const args = [CHILD, JSON.stringify(postgres.connection), ...names.split(' ').filter(Boolean)];
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    // Written by the child as a report.
    reports.set(names, JSON.parse(stdout) as PgReport);
  }
}, 120_000);

function report(names: string): PgReport {
  const found = reports.get(names);
  if (found === undefined) throw new Error(`no run with ${names}`);
  return found;
}

function spanNames(names: string): string[] {
  return report(names)
    .spans.map((span) => span.name)
    .sort();
}

function statementSpans(names: string) {
  return report(names).spans.filter((span) => span.name.startsWith('pg.query'));
}

/** How deep a stack reaches is the one thing that two wrappers on top of each other change. */
function withoutDepth(seen: PgReport['seen']): PgReport['seen'] {
  return { ...seen, 'connect again': undefined };
}

describe('what the service sees', () => {
  test('is the same with us and without', () => {
    expect(report('ours').seen).toEqual(report('').seen);
    expect(Object.keys(report('').seen).length).toBeGreaterThan(40);
    expect(report('').seen['unhandled rejections']).toHaveLength(2);
  });

  test.each(['theirs ours', 'ours theirs'])('is the same beside theirs: %s', (names) => {
    expect(withoutDepth(report(names).seen)).toEqual(withoutDepth(report('theirs').seen));
  });

  test('nothing of ours failed on the way', () => {
    for (const run of reports.values()) expect(run.internalErrors).toBe(0);
  });
});

describe('what is recorded', () => {
  test('every call has ended', () => {
    expect(report('ours').calls.length).toBeGreaterThan(40);
    for (const run of reports.values()) expect(run.calls.filter((call) => !call.ended)).toEqual([]);
  });

  test.each(['theirs ours', 'ours theirs'])('is as much beside theirs as alone: %s', (names) => {
    expect(report(names).calls).toHaveLength(report('ours').calls.length);
  });

  test.each(['ours again', 'theirs ours again'])('J5: registered twice, one record: %s', (names) => {
    expect(report(names).calls).toHaveLength(report('ours').calls.length);
  });
});

describe('spans', () => {
  test.each(['theirs ours', 'ours theirs'])('theirs are as many as without us: %s', (names) => {
    expect(spanNames(names)).toEqual(spanNames('theirs'));
  });

  test.each(['theirs ours', 'ours theirs'])(
    'each statement that was sent is told on its span: %s',
    (names) => {
      const untold = statementSpans(names).filter((span) => span.attributes[ATTR.dependency] === undefined);
      // Where ours is outside, theirs has ended the spans of three calls that pg threw for before we hear of it.
      expect(untold).toHaveLength(names === 'theirs ours' ? 3 : 0);
      const ids = statementSpans(names).map((span) => span.attributes[ATTR.connectionId]);
      expect(new Set(ids.filter((id) => typeof id === 'number')).size).toBeGreaterThan(5);
    },
  );

  test.each(['theirs ours', 'ours theirs'])('E4: behind query_timeout, also by callback: %s', (names) => {
    const timedOut = statementSpans(names).filter(
      (span) => span.attributes[ATTR.cancelSource] === 'local_timeout',
    );
    expect(
      timedOut.map((span) => [span.attributes[ATTR.ownTimeout], span.attributes[ATTR.mayStillRun]]),
    ).toEqual([
      [30, true],
      [30, true],
    ]);
  });

  test.each(['theirs ours', 'ours theirs'])(
    'a wait for the pool that ran out is told on the wait: %s',
    (names) => {
      const waits = report(names).spans.filter(
        (span) => span.name === 'pg-pool.connect' && span.attributes[ATTR.cancelSource] === 'local_timeout',
      );
      expect(
        waits.map((span) => [span.attributes[ATTR.expiryPhase], span.attributes[ATTR.ownTimeout]]),
      ).toEqual([
        ['pool_wait', 400],
        ['pool_wait', 400],
      ]);
    },
  );
});
