/**
 * Every number is kept in a cell that its user looks up once and holds: a counter cell costs 1 ns, an
 * OpenTelemetry `add` 560 ns of which most is hashing the labels (measured; docs/benchmarks.md). The cells
 * are handed over at collection, by a metric producer where the SDK is ours, else by observable
 * instruments; histograms under a foreign provider have no observable form and are also recorded there.
 */
import type { Attributes } from '@opentelemetry/api';
import {
  CLOSED_LABELS,
  type LabelName,
  labelKey,
  MAX_MODES,
  MAX_QUEUES,
  METRICS,
  type MetricDefinition,
  type MetricKey,
  RATIO_BUCKETS,
  SECONDS_BUCKETS,
} from './names.ts';

export class NumberCell {
  value = 0;
  readonly attributes: Attributes;

  constructor(attributes: Attributes) {
    this.attributes = attributes;
  }

  add(amount: number): void {
    this.value += amount;
  }

  /** A gauge whose value is not known is left out, and is not 0. */
  get isAbsent(): boolean {
    return Number.isNaN(this.value);
  }
}

/** A histogram with explicit bounds. Negative and non-finite values are not recorded (the SDK drops them). */
export class HistogramCell {
  readonly attributes: Attributes;
  readonly bounds: readonly number[];
  readonly counts: number[];
  sum = 0;
  count = 0;
  /** Set where a foreign meter must see each value. */
  sink: ((value: number, attributes: Attributes) => void) | undefined;

  constructor(attributes: Attributes, bounds: readonly number[]) {
    this.attributes = attributes;
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number): void {
    if (!(value >= 0) || value === Infinity) return;
    let index = 0;
    // A bucket is "up to and including its bound", as in the SDK.
    while (index < this.bounds.length && value > (this.bounds[index] ?? Infinity)) index++;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += value;
    this.count++;
    this.sink?.(value, this.attributes);
  }

  recordMs(ms: number): void {
    this.record(ms / 1000);
  }
}

/** By one label's value: the trees of the next label, or the cells of the last. */
type Tree<Cell> = Map<string, Tree<Cell> | Cell>;

/** All series of one metric. Label values are given in the order of the definition's labels, at most four. */
export class Family<Cell extends NumberCell | HistogramCell> {
  readonly definition: MetricDefinition;
  readonly #cells: Cell[] = [];
  readonly #create: (attributes: Attributes) => Cell;
  readonly #tree: Tree<Cell> = new Map();
  readonly #depth: number;
  #onCell: ((cell: Cell) => void) | undefined;
  /** Called by whoever collects, before it reads: for values that change with time and not at an event. */
  refresh: (() => void) | undefined;
  /** Has everything counted that was put off. */
  beforeRead: (() => void) | undefined;

  constructor(definition: MetricDefinition, create: (attributes: Attributes) => Cell) {
    this.definition = definition;
    this.#create = create;
    this.#depth = definition.labels.length;
  }

  /** All series there are, up to date. */
  get cells(): readonly Cell[] {
    this.beforeRead?.();
    return this.#cells;
  }

  /** The series with these label values, made at 0 if it is new. Callers bound open labels before. */
  cell(...values: readonly string[]): Cell;
  // On every request and call: no array for the values, and no loop over them.
  cell(a = '', b = '', c = '', d = ''): Cell {
    const depth = this.#depth;
    let node = this.#tree.get(a);
    if (depth > 1 && node !== undefined) node = (node as Tree<Cell>).get(b);
    if (depth > 2 && node !== undefined) node = (node as Tree<Cell>).get(c);
    if (depth > 3 && node !== undefined) node = (node as Tree<Cell>).get(d);
    // As deep as there are labels there are cells, and above only trees.
    return node === undefined ? this.#createCell([a, b, c, d]) : (node as Cell);
  }

  #createCell(values: readonly string[]): Cell {
    const { labels } = this.definition;
    const attributes: Attributes = {};
    let tree = this.#tree;
    let key = values[0] ?? '';
    for (const [i, label] of labels.entries()) {
      const value = values[i] ?? '';
      attributes[labelKey(label)] = value;
      if (i === 0) continue;
      let next = tree.get(key);
      if (!(next instanceof Map)) {
        next = new Map();
        tree.set(key, next);
      }
      tree = next;
      key = value;
    }
    const cell = this.#create(attributes);
    tree.set(key, cell);
    this.#cells.push(cell);
    this.#onCell?.(cell);
    return cell;
  }

  /** Calls `visit` for each cell there is and each that will be. */
  eachCell(visit: (cell: Cell) => void): void {
    const { cells } = this;
    this.#onCell = visit;
    for (const cell of cells) visit(cell);
  }
}

type FamilyOf<K extends MetricKey> = (typeof METRICS)[K]['type'] extends 'histogram'
  ? Family<HistogramCell>
  : Family<NumberCell>;
export type Families = { readonly [K in MetricKey]: FamilyOf<K> };

/** Makes the families of all metrics. `secondsBuckets` replaces the default bounds of durations. */
export function createFamilies(secondsBuckets: readonly number[] = SECONDS_BUCKETS): Families {
  const families: Record<string, Family<NumberCell> | Family<HistogramCell>> = {};
  for (const [key, definition] of Object.entries(METRICS)) {
    const bounds = definition.unit === '1' ? RATIO_BUCKETS : secondsBuckets;
    families[key] =
      definition.type === 'histogram'
        ? new Family(definition, (attributes) => new HistogramCell(attributes, bounds))
        : new Family(definition, (attributes) => new NumberCell(attributes));
  }
  // Built key by key from METRICS just above, which the compiler cannot follow.
  return families as unknown as Families;
}

export interface LabelCaps {
  readonly operation: number;
  readonly dependency: number;
  readonly caller: number;
}

/**
 * The most series a metric can have in one process: the product of its labels' values, each open label
 * with its cap and `other` (and `unknown` or `none` where it has one); a histogram has buckets + 3 for each.
 */
export function seriesBound(
  definition: MetricDefinition,
  caps: LabelCaps,
  buckets: number = SECONDS_BUCKETS.length,
): number {
  let bound = 1;
  for (const label of definition.labels) bound *= labelBound(label, caps);
  if (definition.type !== 'histogram') return bound;
  return bound * ((definition.unit === '1' ? RATIO_BUCKETS.length : buckets) + 3);
}

function labelBound(label: LabelName, caps: LabelCaps): number {
  if (label === 'operation' || label === 'dependency' || label === 'caller') return caps[label] + 2;
  if (label === 'pool') return caps.dependency + 1;
  if (label === 'queue') return MAX_QUEUES;
  if (label === 'mode') return MAX_MODES;
  // Each mode has one.
  if (label === 'policy_version' || label === 'trigger') return 1;
  // binding_term has the value `none` beside its list.
  return CLOSED_LABELS[label].length + (label === 'binding_term' ? 1 : 0);
}
