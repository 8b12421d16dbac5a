/** Who cancels, what goes on for nobody, what it costs, which contract is broken, and whether all this can be trusted. */
import { CANCEL_SOURCES, DUPLICATE_ABILITIES, VIOLATIONS, WORK_KINDS } from '../../src/core/terms.ts';
import { ATTR } from '../../src/telemetry/names.ts';
import type { Board, Row } from '../board.ts';
import { lines, stat } from '../kinds.ts';
import { boardLink, ofRow, ofSeries, runbookLinks, traceLinks } from '../links.ts';
import { type Queries, RANGE, share, sum } from '../queries.ts';
import { table } from '../table.ts';

const UNINTENDED = 'intended="no"';

export const CANCELLATION_AND_WASTE: Board = {
  name: 'waste',
  title: 'Cancellation and wasted work',
  description:
    'Who gives up, what goes on afterwards for nobody, what does it cost, and which contract is broken?',
  filters: ['operation', 'dependency'],
  rows: (q) => [waste(q), cancellation(q), contract(q), telemetry(q)],
};

function waste(q: Queries): Row {
  const late = sum(q.rate('executionLate'), 'dependency');
  return {
    id: 10,
    title: 'Waste',
    panels: [
      lines({
        id: 11,
        title: 'Share of execution time after the deadline, by dependency',
        question: 'How much of the scarce resource serves nobody?',
        shown: 'seconds past the deadline of the request ÷ all seconds that the dependency was kept busy.',
        action:
          'A diagnostic, not a target. Take the dependency with the most absolute seconds, in the picture beside it, first.',
        unit: 'percentunit',
        noValue: 'no call yet',
        width: 8,
        height: 9,
        targets: [{ expr: share(late, sum(q.rate('execution'), 'dependency')), legend: '{{dependency}}' }],
        min: 0,
        max: 1,
        links: traceLinks(q.options, [[ATTR.dependency, ofSeries('dependency')]]),
      }),
      lines({
        id: 12,
        title: 'Places kept busy past the deadline, by dependency',
        question: 'What does it cost?',
        shown:
          'seconds past the deadline per second = connections, workers or slots that are busy for nobody.',
        action: 'Wire the abort through to this dependency: signal() of the package, or its own cancel.',
        unit: 'short',
        noValue: 'no call yet',
        width: 8,
        height: 9,
        targets: [{ expr: `${late} > 0`, legend: '{{dependency}}' }],
        stack: 'sum',
        links: traceLinks(q.options, [[ATTR.dependency, ofSeries('dependency')]]),
      }),
      lines({
        id: 13,
        title: 'Execution time per request and per useful request',
        question: 'What does a useful result cost, against what a request costs?',
        shown: 'seconds of all dependencies ÷ ended requests; the same ÷ useful requests.',
        action: 'The lines part: work is done and thrown away. The same demand costs more for each result.',
        unit: 's',
        noValue: 'no traffic',
        width: 8,
        height: 9,
        targets: [
          { expr: share(sum(q.rate('execution')), sum(q.rate('outcomes'))), legend: 'per request' },
          {
            expr: share(sum(q.rate('execution')), sum(q.rate('outcomes', 'outcome="useful"'))),
            legend: 'per useful request',
          },
        ],
      }),
      lines({
        id: 14,
        title: 'Requests and messages per second that the service has had before, by what it could do',
        question: 'How much of the work is a duplicate, and does it do harm?',
        shown:
          'recognised: known to be one. prevented: no second effect. returned: the first result was given again.',
        action:
          'recognised without prevented: the effect happens twice; that operation must not be repeated.',
        unit: 'reqps',
        noValue: 'none was recognised',
        width: 24,
        height: 7,
        targets: [{ expr: sum(q.rate('duplicates'), 'ability'), legend: '{{ability}}' }],
        words: DUPLICATE_ABILITIES,
      }),
    ],
  };
}

function cancellation(q: Queries): Row {
  const { job } = q;
  const items = (more: string) => sum(q.rate('postCancelItems', more, RANGE), job, 'dependency', 'kind');
  return {
    id: 20,
    title: 'Cancellation',
    panels: [
      lines({
        id: 21,
        title: 'Requests ended early per second, by who ended them',
        question: 'Who gives up?',
        shown: 'requests by their first cancel source.',
        action:
          'client_disconnect: the caller waits less than its budget says. upstream_cancel: the hop above.',
        unit: 'reqps',
        noValue: 'nobody gave up',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(q.rate('cancellations'), 'source')} > 0`, legend: '{{source}}' }],
        stack: 'sum',
        words: CANCEL_SOURCES,
        links: traceLinks(q.options, [[ATTR.cancelSource, ofSeries('source')]]),
      }),
      lines({
        id: 22,
        title: 'Work after the cancel, by kind',
        question: 'What ignores the signal, and for how long?',
        shown:
          'seconds worked after a cancel or the deadline, per second; work marked with detach() is not in it.',
        action:
          'http: pass the signal to the client. sql: cancel the statement. handler: check the signal between steps.',
        unit: 'short',
        noValue: 'no work after a cancel',
        width: 8,
        height: 9,
        targets: [
          { expr: `${sum(q.rate('postCancelSeconds', UNINTENDED), 'kind')} > 0`, legend: '{{kind}}' },
        ],
        stack: 'sum',
        words: WORK_KINDS,
      }),
      table({
        id: 23,
        title: 'Work that ignored the cancel ÷ open work',
        question: 'Where is the abort not wired through?',
        shown:
          'over the range: pieces that ran to their end or began after the cancel ÷ all that were open then.',
        action: 'Share 1: nothing listens to the signal there. Start with the largest seconds.',
        noValue: 'no work after a cancel',
        width: 8,
        height: 9,
        keys: { [job]: 'service', dependency: 'dependency', kind: 'kind' },
        columns: [
          {
            title: 'ignored',
            expr: share(items('result=~"completed|started_after"'), items('')),
            unit: 'percentunit',
            isShare: true,
          },
          {
            title: 'seconds/s',
            expr: `${sum(q.rate('postCancelSeconds', UNINTENDED, RANGE), job, 'dependency', 'kind')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'ignored',
        links: [
          boardLink(q.options, 'dependencies', 'This dependency', {
            job: ofRow('service'),
            dependency: ofRow('dependency'),
          }),
        ],
      }),
      lines({
        id: 24,
        title: 'Intended work beside requests: seconds per second of detached calls',
        question: 'How much was marked as meant to outlive its request?',
        shown: 'seconds of calls inside detach(), per second. Not waste, and not in the pictures above.',
        action: 'Growing without an end: what was to run beside requests has become the load.',
        unit: 'short',
        noValue: 'nothing is detached',
        width: 24,
        height: 7,
        targets: [{ expr: sum(q.rate('detached'), 'dependency'), legend: '{{dependency}}' }],
        stack: 'sum',
      }),
    ],
  };
}

function contract(q: Queries): Row {
  const { job } = q;
  return {
    id: 30,
    title: 'Contract',
    panels: [
      table({
        id: 31,
        title: 'Violations over the range, by service and kind',
        question: 'Which promise between services is broken?',
        shown:
          'findings: a call given more than was left, one started after the end, two owners, a commit after a cancel.',
        action:
          'reset: of two services that show it, the outer one hands out time that nobody has; repair it first.',
        noValue: 'none',
        width: 8,
        height: 8,
        keys: { [job]: 'service', kind: 'kind' },
        columns: [
          { title: 'found', expr: `${sum(q.increase('violations'), job, 'kind')} > 0`, unit: 'short' },
        ],
        sortBy: 'found',
        links: [
          boardLink(q.options, 'path', 'Where its time goes', { job: ofRow('service') }),
          ...runbookLinks(q.options),
        ],
      }),
      lines({
        id: 32,
        title: 'Violations per second, by kind',
        question: 'Since when?',
        shown: 'the same, per second.',
        action: 'A step that falls together with a policy change or a deployment names its cause.',
        unit: 'ops',
        noValue: 'no data',
        width: 8,
        height: 8,
        targets: [{ expr: sum(q.rate('violations'), 'kind'), legend: '{{kind}}' }],
        words: VIOLATIONS,
      }),
      lines({
        id: 33,
        title: 'Without any budget ÷ verdicts, by caller',
        question: 'Who calls without a deadline?',
        shown: 'verdict absent ÷ all verdicts. Such requests can expire nowhere, and cost without a limit.',
        action:
          'Make the caller send its budget, or set a default for the operation (docs/configuration.md).',
        unit: 'percentunit',
        noValue: 'no traffic',
        width: 8,
        height: 8,
        targets: [
          {
            expr: share(
              sum(q.rate('verdicts', 'verdict="absent"'), 'caller'),
              sum(q.rate('verdicts'), 'caller'),
            ),
            legend: '{{caller}}',
          },
        ],
        min: 0,
        max: 1,
        links: traceLinks(q.options, [[ATTR.verdict, 'absent']]),
      }),
    ],
  };
}

function telemetry(q: Queries): Row {
  const { job } = q;
  return {
    id: 40,
    title: 'Telemetry',
    panels: [
      stat({
        id: 41,
        title: 'Values folded into "other", by label',
        question: 'Can the splits on the other panels be trusted?',
        shown: 'records over the range whose label value was beyond its cap.',
        action:
          'Above 0: raise the cap or name the values in the configuration; until then splits by this label are wrong.',
        unit: 'short',
        noValue: 'none',
        width: 6,
        height: 6,
        targets: [{ expr: sum(q.increase('labelOverflow'), 'label'), legend: '{{label}}' }],
        thresholds: [
          { value: null, color: 'text' },
          { value: 0.5, color: 'orange' },
        ],
        decimals: 0,
        hasGraph: false,
        links: runbookLinks(q.options),
      }),
      stat({
        id: 42,
        title: 'Faults inside the package',
        question: 'Did the package itself fail, unseen by the service?',
        shown: 'faults over the range that were kept from the service; each is logged once.',
        action: 'Above 0: read the log of the service and report it; the figures may have gaps.',
        unit: 'short',
        noValue: 'no data',
        width: 6,
        height: 6,
        targets: [{ expr: sum(q.increase('internalErrors')), legend: 'faults' }],
        thresholds: [
          { value: null, color: 'text' },
          { value: 0.5, color: 'orange' },
        ],
        decimals: 0,
        hasGraph: false,
      }),
      lines({
        id: 43,
        title: 'Unusable budget headers per second',
        question: 'Who sends what cannot be read?',
        shown: 'headers by format and reason; repeated and conflict are counted although a value was found.',
        action: 'malformed from one caller: its client. untrusted: docs/trust.md.',
        unit: 'ops',
        noValue: 'all could be used',
        width: 6,
        height: 6,
        targets: [
          {
            expr: `${sum(q.rate('headerInvalid'), 'format', 'reason')} > 0`,
            legend: '{{format}} {{reason}}',
          },
        ],
      }),
      lines({
        id: 44,
        title: 'Instances that report, by service',
        question: 'Is everybody there?',
        shown: 'processes with this package that were scraped.',
        action: 'Fewer than run: see the scrape, the collector, or a log line about a wrong configuration.',
        unit: 'short',
        noValue: 'nobody reports',
        width: 6,
        height: 6,
        targets: [{ expr: `count by (${job}) (${q.series('policyInfo')})`, legend: `{{${job}}}` }],
        min: 0,
        decimals: 0,
      }),
    ],
  };
}
