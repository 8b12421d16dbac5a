/**
 * What may differ from one Grafana to the next, and the limits that panels draw. Whoever labels or scrapes in another
 * way generates anew instead of editing panels; the defaults make the committed files.
 */
import { parseArgs } from 'node:util';
import { isMatcher } from '../rules/options.ts';
import { PARAMETERS } from '../rules/parameters.ts';

export interface GeneratorOptions {
  /** The label that names the service. */
  readonly jobLabel: string;
  /** PromQL matchers that every selector gets beside ours, `env="prod"` for instance. */
  readonly matchers: readonly string[];
  /** Labels of the installation (cluster, namespace): a variable each, which may be absent from the series. */
  readonly labels: readonly string[];
  readonly uidPrefix: string;
  readonly tag: string;
  /** Page of the runbooks; empty: no links to it. */
  readonly runbookUrl: string;
  /** Address of Jaeger's own pages; empty: no links to it. */
  readonly jaegerUrl: string;
  /** Least step of every query, for a data source that does not know its scrape interval; empty: it does. */
  readonly scrapeInterval: string;
  /** Share of admitted requests that are to end usefully. */
  readonly objective: number;
  /** Share of a caller's requests with too little time from which its budgets count as unrealistic. */
  readonly insufficientShare: number;
  /** A dependency is slow from so many times its usual p95. */
  readonly slowFactor: number;
}

export const DEFAULT_OPTIONS: GeneratorOptions = {
  jobLabel: 'job',
  matchers: [],
  labels: [],
  uidPrefix: 'time-budget',
  tag: 'time-budget',
  runbookUrl: '',
  jaegerUrl: 'http://localhost:16686',
  scrapeInterval: '',
  objective: PARAMETERS.objective.default,
  insufficientShare: PARAMETERS.insufficientShare.default,
  slowFactor: PARAMETERS.slowFactor.default,
};

export interface Command {
  readonly options: GeneratorOptions;
  /** Where the files go, or are expected to be; undefined: where the committed ones are. */
  readonly out: string | undefined;
  readonly check: boolean;
  readonly help: boolean;
}

export const HELP = `Writes the dashboards as JSON that Grafana 11, 12 and 13 load from files.

  node dashboards/generate.ts                      the committed files: dashboards/json, docs/dashboards.md
  node dashboards/generate.ts --check              names every committed file that differs; writes nothing
  node dashboards/generate.ts --out DIR ...        files of your own, with any of

  --job-label NAME           the label that names the service (${DEFAULT_OPTIONS.jobLabel})
  --match MATCHER            put into every selector, such as 'env="prod"'; may be given again
  --keep-label NAME          a label of your installation as a variable, such as cluster; may be given again
  --uid-prefix TEXT          (${DEFAULT_OPTIONS.uidPrefix})
  --tag TEXT                 (${DEFAULT_OPTIONS.tag})
  --runbook-url URL          page of the runbooks; none: no links to it
  --jaeger-url URL           Jaeger's own pages (${DEFAULT_OPTIONS.jaegerUrl}); '' for no links to it
  --scrape-interval TEXT     such as 30s, where the data source does not know it
  --objective NUMBER         share that is to end usefully (${DEFAULT_OPTIONS.objective})
  --insufficient-share NUMBER   from which a caller's budgets count as unrealistic (${DEFAULT_OPTIONS.insufficientShare})
  --slow-factor NUMBER       times the usual p95 from which a dependency is slow (${DEFAULT_OPTIONS.slowFactor})`;

const FLAGS = {
  check: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  out: { type: 'string' },
  'job-label': { type: 'string' },
  match: { type: 'string', multiple: true },
  'keep-label': { type: 'string', multiple: true },
  'uid-prefix': { type: 'string' },
  tag: { type: 'string' },
  'runbook-url': { type: 'string' },
  'jaeger-url': { type: 'string' },
  'scrape-interval': { type: 'string' },
  objective: { type: 'string' },
  'insufficient-share': { type: 'string' },
  'slow-factor': { type: 'string' },
} as const;

const LABEL = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** What the dashboards call their own. */
const VARIABLES = ['job', 'instance', 'caller', 'operation', 'priority', 'dependency', 'split'];
/** Grafana takes uids of up to 40 characters; behind the prefix ours have from 5 (`-path`) to 13 (`-dependencies`). */
const UID_PREFIX = /^[a-z][a-z0-9-]{2,26}$/;

/** Throws a `TypeError` or `RangeError` that says what is allowed. */
export function readCommand(argv: readonly string[]): Command {
  const { values } = parseArgs({ args: [...argv], options: FLAGS, strict: true });
  const defaults = DEFAULT_OPTIONS;
  const labels = values['keep-label'] ?? defaults.labels;
  const jobLabel = values['job-label'] ?? defaults.jobLabel;
  for (const label of [jobLabel, ...labels]) demand(LABEL.test(label), 'a label', 'a label name', label);
  for (const [i, label] of labels.entries()) {
    const isTaken = VARIABLES.includes(label) || labels.indexOf(label) < i;
    demand(!isTaken, '--keep-label', 'a label that no other variable is named after', label);
  }
  const matchers = values.match ?? defaults.matchers;
  for (const one of matchers) demand(isMatcher(one), '--match', 'one matcher as PromQL has it', one);
  const uidPrefix = values['uid-prefix'] ?? defaults.uidPrefix;
  demand(UID_PREFIX.test(uidPrefix), '--uid-prefix', '3 to 27 of a-z, 0-9 and -', uidPrefix);
  const runbookUrl = values['runbook-url'] ?? defaults.runbookUrl;
  demand(isAddress(runbookUrl), '--runbook-url', 'an http(s) address', runbookUrl);
  const jaegerUrl = values['jaeger-url'] ?? defaults.jaegerUrl;
  demand(isAddress(jaegerUrl), '--jaeger-url', 'an http(s) address', jaegerUrl);
  const scrapeInterval = values['scrape-interval'] ?? defaults.scrapeInterval;
  demand(
    /^(\d+(ms|s|m))?$/.test(scrapeInterval),
    '--scrape-interval',
    'a duration such as 15s',
    scrapeInterval,
  );
  return {
    options: {
      jobLabel,
      matchers,
      labels,
      uidPrefix,
      tag: values.tag ?? defaults.tag,
      runbookUrl,
      jaegerUrl,
      scrapeInterval,
      objective: number('--objective', values.objective, defaults.objective, 0.5, 0.99999),
      insufficientShare: number(
        '--insufficient-share',
        values['insufficient-share'],
        defaults.insufficientShare,
        0.01,
        1,
      ),
      slowFactor: number('--slow-factor', values['slow-factor'], defaults.slowFactor, 1, 100),
    },
    out: values.out,
    check: values.check === true,
    help: values.help === true,
  };
}

function number(flag: string, text: string | undefined, absent: number, least: number, most: number): number {
  if (text === undefined) return absent;
  const value = Number(text);
  demand(text.trim() !== '' && value >= least && value <= most, flag, `in ${least}..${most}`, text);
  return value;
}

function isAddress(text: string): boolean {
  return text === '' || (/^https?:\/\//.test(text) && URL.canParse(text));
}

function demand(isRight: boolean, what: string, allowed: string, got: string): void {
  if (!isRight) throw new RangeError(`${what} must be ${allowed}, got ${JSON.stringify(got)}`);
}
