/**
 * How much a fleet sends to its stores, computed from the name lists: series, samples and spans. Without options it
 * writes the tables of docs/sizing.md (with --check, fails when they differ); with options it prints one of your own.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { recordedSeries } from '../dashboards/recorded.ts';
import { DEFAULTS } from '../src/telemetry/config-settings.ts';
import { type LabelCaps, seriesBound } from '../src/telemetry/metrics.ts';
import { METRICS, type MetricDefinition, OPEN_LABELS } from '../src/telemetry/names.ts';

const PAGE = new URL('../docs/sizing.md', import.meta.url);
const BEGIN = '<!-- made by scripts/sizing.ts: begin -->';
const END = '<!-- made by scripts/sizing.ts: end -->';
const INSTANCES = [10, 100, 1000, 10_000];

/** What one instance of a service is like. */
interface Shape {
  readonly name: string;
  readonly caps: LabelCaps;
}

const SHAPES: readonly Shape[] = [
  { name: 'small', caps: { operation: 5, dependency: 3, caller: 2 } },
  { name: 'middle', caps: { operation: 15, dependency: 6, caller: 4 } },
  {
    name: 'default caps',
    caps: {
      operation: DEFAULTS.labels.operations,
      dependency: DEFAULTS.labels.dependencies,
      caller: DEFAULTS.labels.callers,
    },
  },
];

/** What is not in the name lists: traffic of one instance, and how often it is looked at. */
interface Traffic {
  readonly requestsPerS: number;
  readonly callsPerRequest: number;
  /** Share of the traces that tail sampling keeps. */
  readonly kept: number;
  readonly intervalS: number;
}

const TRAFFIC: Traffic = { requestsPerS: 20, callsPerRequest: 3, kept: 0.1, intervalS: 15 };

function seriesOfInstance(caps: LabelCaps): number {
  return Object.values(METRICS).reduce((sum, metric: MetricDefinition) => sum + seriesBound(metric, caps), 0);
}

/** Of one service, however many instances it has: a record keeps one of our labels beside the service's. */
function recordedOfService(caps: LabelCaps): number {
  let sum = 0;
  for (const labels of recordedSeries().values()) {
    // Two values are not counted in a cap: `other`, and the one for "there is none".
    sum += labels.reduce((product, label) => product * (capOf(label, caps) + 2), 1);
  }
  return sum;
}

function capOf(label: string, caps: LabelCaps): number {
  const open = OPEN_LABELS.find((one) => one === label);
  if (open === undefined) throw new Error(`a record keeps ${label}, which has no cap`);
  return caps[open];
}

function fleetTable(shapes: readonly Shape[], traffic: Traffic, instances: readonly number[]): string[] {
  const { requestsPerS, callsPerRequest, kept, intervalS } = traffic;
  const spansPerS = requestsPerS * (1 + callsPerRequest);
  const rows = instances.flatMap((count) =>
    shapes.map(({ name, caps }) => {
      const series = seriesOfInstance(caps) * count;
      return `| ${number(count)} | ${name} | ${number(series)} | ${number(series / intervalS)} | ${number(spansPerS * count)} | ${number(spansPerS * count * kept)} |`;
    }),
  );
  return [
    '| instances | shape | series, at most | samples/s, at most | spans/s, made | spans/s, kept |',
    '|---:|---|---:|---:|---:|---:|',
    ...rows,
  ];
}

function shapeTable(): string[] {
  return [
    '| shape | operations | dependencies | callers | series of one instance, at most | recorded series of one service |',
    '|---|---:|---:|---:|---:|---:|',
    ...SHAPES.map(
      ({ name, caps }) =>
        `| ${name} | ${caps.operation} | ${caps.dependency} | ${caps.caller} | ${number(seriesOfInstance(caps))} | ${number(recordedOfService(caps))} |`,
    ),
  ];
}

/** What a panel of one service reads, from the metrics themselves and from the records. */
function queryTable(): string[] {
  const middle = SHAPES[1];
  if (middle === undefined) throw new Error('there is no middle shape');
  const raw = seriesBound(METRICS.outcomes, middle.caps);
  const recorded = middle.caps.operation + 2;
  return [
    '| instances of the service | `time_budget_outcomes_total` | `operation:time_budget_unuseful:ratio_rate1h` |',
    '|---:|---:|---:|',
    ...INSTANCES.map((count) => `| ${number(count)} | ${number(raw * count)} | ${number(recorded)} |`),
  ];
}

function number(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function page(text: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin) throw new Error('docs/sizing.md has lost its markers');
  const { requestsPerS, callsPerRequest, kept, intervalS } = TRAFFIC;
  const made = [
    '### One instance',
    '',
    ...shapeTable(),
    '',
    '### The fleet',
    '',
    `${requestsPerS} requests per second and instance, ${callsPerRequest} calls each, ${kept * 100} % of the traces kept, scraped or pushed every ${intervalS} s.`,
    '',
    ...fleetTable(SHAPES, TRAFFIC, INSTANCES),
    '',
    '### Series that a query reads, one service of the middle shape',
    '',
    ...queryTable(),
  ];
  return `${text.slice(0, begin + BEGIN.length)}\n\n${made.join('\n')}\n\n${text.slice(end)}`;
}

const { values } = parseArgs({
  options: {
    check: { type: 'boolean' },
    instances: { type: 'string' },
    operations: { type: 'string' },
    dependencies: { type: 'string' },
    callers: { type: 'string' },
    requests: { type: 'string' },
    calls: { type: 'string' },
    kept: { type: 'string' },
    interval: { type: 'string' },
  },
});

function option(name: Exclude<keyof typeof values, 'check'>, fallback: number): number {
  const text = values[name];
  const value = text === undefined ? fallback : Number(text);
  if (text === '' || !Number.isFinite(value) || value < 0 || (value === 0 && name === 'interval')) {
    throw new RangeError(`--${name} must be a number from 0, got ${JSON.stringify(text)}`);
  }
  return value;
}

function own(): string[] {
  const caps = {
    operation: option('operations', DEFAULTS.labels.operations),
    dependency: option('dependencies', DEFAULTS.labels.dependencies),
    caller: option('callers', DEFAULTS.labels.callers),
  };
  const traffic: Traffic = {
    requestsPerS: option('requests', TRAFFIC.requestsPerS),
    callsPerRequest: option('calls', TRAFFIC.callsPerRequest),
    kept: option('kept', TRAFFIC.kept),
    intervalS: option('interval', TRAFFIC.intervalS),
  };
  return fleetTable([{ name: 'yours', caps }], traffic, [option('instances', 1)]);
}

const asked = Object.keys(values).filter((name) => name !== 'check');
if (asked.length > 0) {
  console.log(own().join('\n'));
} else {
  const committed = readFileSync(PAGE, 'utf8');
  const wanted = page(committed);
  if (values.check !== true) writeFileSync(PAGE, wanted);
  else if (committed !== wanted) {
    console.error('docs/sizing.md is not what the name lists say: run `npm run docs`');
    process.exitCode = 1;
  }
}
