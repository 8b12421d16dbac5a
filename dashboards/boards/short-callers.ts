/** The panel on callers whose time is too short, which stands wherever a caller is set against a dependency. */
import { ATTR } from '../../src/telemetry/names.ts';
import { lines } from '../kinds.ts';
import { ofSeries, traceLinks } from '../links.ts';
import { type Queries, share, sum } from '../queries.ts';

type Lines = Parameters<typeof lines>[0];

export function shortCallers(
  q: Queries,
  head: Pick<Lines, 'id' | 'title' | 'question' | 'shown' | 'action'>,
): ReturnType<typeof lines> {
  return lines({
    ...head,
    unit: 'percentunit',
    noValue: 'no traffic',
    width: 8,
    height: 9,
    targets: [
      {
        expr: share(sum(q.rate('insufficient'), 'caller'), sum(q.rate('offered'), 'caller')),
        legend: '{{caller}}',
      },
    ],
    min: 0,
    max: 1,
    links: traceLinks(q.options, [[ATTR.caller, ofSeries('caller')]]),
  });
}
