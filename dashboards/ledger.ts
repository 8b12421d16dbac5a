/** The row of one request: who ran out of time, the numbers of one trace, and the trace itself. Needs Tempo. */
import { FieldColorModeId, type Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { DataqueryBuilder, SearchTableType, TempoQueryType } from '@grafana/grafana-foundation-sdk/tempo';
import { ATTR } from '../src/telemetry/names.ts';
import type { Row } from './board.ts';
import { NEUTRAL_COLOUR } from './colours.ts';
import { text } from './kinds.ts';
import { boardLink, runbookLinks } from './links.ts';
import { type Draft, describe, type PanelSpec, refId, TEMPO } from './panel.ts';
import type { Queries } from './queries.ts';

/** The variable that says which trace is shown; a click in the first table sets it. */
export const TRACE_ID = 'trace_id';

/** Columns of the numbers, in the order in which time goes by. */
const LEDGER = [
  ['received', ATTR.received],
  ['spent before first call', ATTR.spentBeforeFirstCall],
  ['left before', ATTR.remainingBefore],
  ['allowance', ATTR.allowance],
  ['handed down', ATTR.handedDown],
  ['left after', ATTR.remainingAfter],
  ['left at the end', ATTR.remaining],
] as const;
const WORDS = [
  ['outcome', ATTR.outcome],
  ['phase', ATTR.expiryPhase],
  ['cause', ATTR.expiryCause],
  ['dependency', ATTR.dependency],
  ['limit', ATTR.bindingTerm],
  ['refused for', ATTR.refusalReason],
] as const;
const RAN_OUT = [
  ['operation', ATTR.operation],
  ['caller', ATTR.caller],
  ['outcome', ATTR.outcome],
  ['phase', ATTR.expiryPhase],
  ['dependency', ATTR.expiryDependency],
  ['cause', ATTR.expiryCause],
  ['received', ATTR.received],
  ['overrun', ATTR.overrun],
] as const;

/** Names of Tempo's own columns in a table of spans. */
const SERVICE = 'service.name';
const HIDDEN_TRACE = 'traceIdHidden';

export function ledger(q: Queries): Row {
  const chosen = `resource.service.name =~ "\${job:regex}" && span.${ATTR.operation} =~ "\${operation:regex}"`;
  return {
    id: 60,
    title: 'One request (needs Tempo)',
    isCollapsed: true,
    panels: [
      spans({
        id: 61,
        title: 'Requests that ran out of time',
        question: 'Which requests can be looked at?',
        shown: 'server spans with outcome expired or late in the range; sampled traces only.',
        action: 'Click on a name: the two below show that request.',
        noValue: 'no such trace was kept',
        height: 9,
        columns: RAN_OUT,
        query: `{ ${chosen} && span.${ATTR.outcome} =~ "expired|late" }`,
        links: [
          boardLink(q.options, 'path', 'Show this request', {
            [TRACE_ID]: `\${__data.fields.${HIDDEN_TRACE}}`,
          }),
        ],
        bars: [],
      }),
      spans({
        id: 62,
        title: 'Budget ledger of the request',
        question: 'Where did the time of this one request go?',
        shown:
          'every span of the trace that carries a budget, by start: received − spent = left; handed down ≤ left before.',
        action: 'Follow the step: the span between the last good number and the first bad one took the time.',
        noValue: 'no trace chosen, or it was not kept',
        height: 10,
        columns: [...LEDGER, ...WORDS],
        query: `{ trace:id = "$${TRACE_ID}" && (span.${ATTR.remainingBefore} != nil || span.${ATTR.received} != nil || span.${ATTR.outcome} != nil) }`,
        links: [],
        bars: ['left before', 'left after', 'left at the end'],
      }),
      trace(),
      text({
        id: 64,
        title: 'How to read it',
        width: 6,
        height: 12,
        content: [
          'Numbers are milliseconds; what is empty did not happen. Left may be negative: the span ended that much late.',
          '',
          'The sums close: what a service received is what it spent, plus what was left at the end.',
          '`handed down` is never more than `left before`; where the next service received more, `reset_violation` is set.',
          '',
          'A hop that is missing was not sampled, or does not run this package.',
          ...runbookLinks(q.options).map(({ title, url }) => `\n[${title}](${url})`),
        ].join('\n'),
      }),
    ],
  };
}

interface SpansSpec extends Omit<PanelSpec, 'unit' | 'targets' | 'width'> {
  readonly query: string;
  readonly columns: readonly (readonly [title: string, attribute: string])[];
  /** Columns drawn as bars, so that the shrinking is seen. */
  readonly bars: readonly string[];
}

function spans(spec: SpansSpec): Draft {
  const attributes = spec.columns.map(([, attribute]) => `span.${attribute}`);
  const target = new DataqueryBuilder()
    .refId(refId(0))
    .datasource(TEMPO)
    .queryType(TempoQueryType.Traceql)
    .tableType(SearchTableType.Spans)
    .limit(100)
    .query(`${spec.query} | select(${['resource.service.name', ...attributes].join(', ')})`);
  const numbers = spec.columns.filter(([, attribute]) => attribute.endsWith('_ms'));
  const order = ['time', SERVICE, 'name', ...spec.columns.map(([, attribute]) => attribute), 'duration'];
  const panel = new TableBuilder()
    .id(spec.id)
    .title(spec.title)
    .description(describe(spec))
    .datasource(TEMPO)
    .withTarget(target)
    .unit('ms')
    .noValue(spec.noValue)
    .build();
  panel.options = { ...panel.options, cellHeight: 'sm', sortBy: [{ displayName: 'start', desc: false }] };
  panel.transformations = [
    // Tempo gives every attribute as a text.
    {
      id: 'convertFieldType',
      options: {
        conversions: numbers.map(([, attribute]) => ({ targetField: attribute, destinationType: 'number' })),
      },
    },
    {
      id: 'organize',
      options: {
        excludeByName: { traceService: true, traceName: true, spanID: true },
        renameByName: {
          time: 'start',
          [SERVICE]: 'service',
          ...Object.fromEntries(spec.columns.map(([title, attribute]) => [attribute, title])),
        },
        indexByName: Object.fromEntries(order.map((name, index) => [name, index])),
      },
    },
  ];
  panel.fieldConfig?.overrides.push(
    {
      matcher: { id: 'byName', options: 'name' },
      properties: [{ id: 'links', value: [...(spec.links ?? [])] }],
    },
    ...spec.bars.map((title) => ({
      matcher: { id: 'byName', options: title },
      properties: [
        { id: 'custom.cellOptions', value: { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' } },
        { id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor: NEUTRAL_COLOUR } },
      ],
    })),
  );
  return { panel, width: 24, height: spec.height };
}

function trace(): Draft {
  const target = new DataqueryBuilder()
    .refId(refId(0))
    .datasource(TEMPO)
    .queryType(TempoQueryType.Traceql)
    .query(`$${TRACE_ID}`)
    .build();
  const panel: Panel = {
    type: 'traces',
    id: 63,
    title: 'The trace',
    description: describe({
      question: 'What does the request look like as a waterfall?',
      shown:
        'the trace whose id stands on top. Marks on a span are its events: handed down, refused, expired, cancelled.',
      action: 'Gaps between the calls of a service are its own time: queue, handler, event loop.',
    }),
    datasource: TEMPO,
    targets: [target],
    options: {},
    fieldConfig: { defaults: { noValue: 'no trace chosen, or it was not kept' }, overrides: [] },
  };
  return { panel, width: 18, height: 12 };
}
