/** The spans of OpenTelemetry's pg instrumentation, brought together with the calls that they show. */

import type { Hooks } from '../adapter.ts';
import { SpanFinder } from '../shared/call-span.ts';

/** What a span of pg can be about. */
export interface SpanSubject {
  /** How its span's name begins. */
  readonly spanName: 'pg.query' | 'pg.connect' | 'pg-pool.connect';
  /** The instrumentation hears of some of its ends before us. */
  readonly isToldLate: boolean;
  /** Its span is being ended before we were told. The instrumentation has made a text without details of an error. */
  spanEnds(error: unknown): void;
}

export type PgSpans = SpanFinder<SpanSubject>;

export function createPgSpans(hooks: Hooks): PgSpans {
  return new SpanFinder<SpanSubject>(hooks, {
    scope: '@opentelemetry/instrumentation-pg',
    matches: (subject, _attributes, name) => name.startsWith(subject.spanName),
    endsFirst: (subject) => subject.isToldLate,
    ending: (subject, error) => subject.spanEnds(error),
  });
}
