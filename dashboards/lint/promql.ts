/** What a PromQL expression reads: its selectors, and the labels that it groups and matches by. */
import type { SyntaxNode, Tree } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
  /** The function that it is the argument of, if any. */
  readonly calledBy: string | undefined;
  /** Its range as it stands there, `$__rate_interval` for instance. */
  readonly range: string | undefined;
}

/** Labels that a part of the expression is grouped or matched by, and the selectors inside that part. */
export interface Grouping {
  readonly text: string;
  readonly labels: readonly string[];
  /** For `on (…)` one list for each side. */
  readonly sides: readonly (readonly Selector[])[];
}

export interface Parsed {
  /** Where it is no PromQL; undefined where it is. */
  readonly error: string | undefined;
  readonly selectors: readonly Selector[];
  readonly groupings: readonly Grouping[];
  /** `or vector(…)`: behind a grouping it adds a series instead of standing in for one. */
  readonly hasOrVector: boolean;
  /** What is divided by, as it stands there. */
  readonly divisors: readonly string[];
}

/** Grafana's own variables where a duration stands: the parser needs one, the linter wants to see which. */
const DURATIONS: ReadonlyMap<string, string> = new Map([
  ['$__rate_interval', '61001ms'],
  ['$__range', '61002ms'],
  ['$__interval', '61003ms'],
]);

/** `variables` are put in first: names without `$`, with the value to try. Those in texts may stay. */
export function parsePromql(text: string, variables: Readonly<Record<string, string>> = {}): Parsed {
  let expression = text;
  for (const [name, duration] of DURATIONS) expression = expression.replaceAll(name, duration);
  expression = replaceOutsideTexts(expression, variables);
  return new Reader(expression, parser.parse(expression)).read();
}

function replaceOutsideTexts(text: string, variables: Readonly<Record<string, string>>): string {
  const pieces = text.split(/("(?:[^"\\]|\\.)*")/);
  return pieces
    .map((piece) =>
      piece.startsWith('"')
        ? piece
        : piece.replace(/\$\{?(\w+)\}?/g, (whole, name: string) => variables[name] ?? whole),
    )
    .join('');
}

class Reader {
  readonly #text: string;
  readonly #tree: Tree;

  constructor(text: string, tree: Tree) {
    this.#text = text;
    this.#tree = tree;
  }

  read(): Parsed {
    let error: string | undefined;
    const selectors: Selector[] = [];
    const groupings: Grouping[] = [];
    const divisors: string[] = [];
    let hasOrVector = false;
    this.#tree.iterate({
      enter: ({ node }) => {
        if (node.type.isError)
          error ??= `character ${node.from + 1}: …${this.#text.slice(node.from, node.from + 30)}`;
        if (node.name === 'VectorSelector') selectors.push(this.#selector(node));
        if (node.name === 'AggregateExpr') groupings.push(...this.#aggregation(node));
        if (node.name !== 'BinaryExpr') return;
        groupings.push(...this.#matching(node));
        const right = node.lastChild;
        if (node.getChild('Div') !== null && right !== null) divisors.push(this.#of(right));
        if (node.getChild('Or') !== null && right !== null)
          hasOrVector ||= this.#of(right).startsWith('vector(');
      },
    });
    return { error, selectors, groupings, hasOrVector, divisors };
  }

  #of(node: SyntaxNode): string {
    return this.#text.slice(node.from, node.to);
  }

  #selector(node: SyntaxNode): Selector {
    const identifier = node.getChild('Identifier');
    const list = node.getChild('LabelMatchers');
    const matchers = (list?.getChildren('UnquotedLabelMatcher') ?? []).map((matcher) => ({
      label: this.#child(matcher, 'LabelName'),
      operator: this.#child(matcher, 'MatchOp'),
      value: this.#child(matcher, 'StringLiteral').slice(1, -1),
    }));
    const matrix = node.parent?.name === 'MatrixSelector' ? node.parent : undefined;
    const outer = outermost(matrix ?? node);
    const call = outer.parent?.parent;
    const calledBy = call?.name === 'FunctionCall' ? this.#child(call, 'FunctionIdentifier') : undefined;
    return {
      metric: identifier === null ? '' : this.#of(identifier),
      matchers,
      calledBy,
      range: matrix === undefined ? undefined : asWritten(this.#child(matrix, 'DurationExpr')),
    };
  }

  #child(node: SyntaxNode, name: string): string {
    const child = node.getChild(name);
    return child === null ? '' : this.#of(child);
  }

  #aggregation(node: SyntaxNode): Grouping[] {
    const body = node.getChild('FunctionCallBody');
    const labels = node.getChild('AggregateModifier')?.getChild('GroupingLabels');
    if (body === null || labels === null || labels === undefined) return [];
    return [{ text: this.#of(labels), labels: this.#labels(labels), sides: [this.#within(body)] }];
  }

  #matching(node: SyntaxNode): Grouping[] {
    const clause = node.getChild('MatchingModifierClause');
    const { firstChild, lastChild } = node;
    if (clause === null || firstChild === null || lastChild === null) return [];
    const labels = clause.getChildren('GroupingLabels').flatMap((list) => this.#labels(list));
    return [{ text: this.#of(clause), labels, sides: [this.#within(firstChild), this.#within(lastChild)] }];
  }

  #labels(list: SyntaxNode): string[] {
    return list.getChildren('LabelName').map((name) => this.#of(name));
  }

  #within(part: SyntaxNode): Selector[] {
    const found: Selector[] = [];
    part.cursor().iterate(({ node }) => {
      if (node.name === 'VectorSelector') found.push(this.#selector(node));
    });
    return found;
  }
}

/** Through `offset`, which stands around a selector. */
function outermost(node: SyntaxNode): SyntaxNode {
  const { parent } = node;
  return parent?.name === 'OffsetExpr' ? outermost(parent) : node;
}

function asWritten(duration: string): string {
  for (const [name, stand] of DURATIONS) if (stand === duration) return name;
  return duration;
}
