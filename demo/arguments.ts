/** The demo's command line. */
import { parseArgs } from 'node:util';

export interface Arguments {
  /** Scenarios to play after the healthy one; undefined: all. */
  readonly scenarios: readonly string[] | undefined;
  readonly keep: boolean;
  /** Only with `keep`. */
  readonly prometheus: boolean;
  readonly json: boolean;
  readonly list: boolean;
  readonly help: boolean;
}

export const HELP = `Plays one request story after another against three real services with a real PostgreSQL and shows where
each request's time went, by what otel-time-budget puts on their spans and into their metrics.

  npm run demo                                  all scenarios, about 25 seconds
  npm run demo -- --scenario slow-dependency    the healthy baseline and this one; may be given again
  npm run demo -- --list                        the names of the scenarios
  npm run demo -- --keep                        leaves the services running until Ctrl-C
  npm run demo -- --keep --prometheus           the same, with callers that keep them busy, and with a Prometheus and
                                                a Collector where they are here (scripts/real-parts.sh)
  npm run --silent demo -- --json               one JSON document with all figures
  npm run demo -- --help                        this text`;

const OPTIONS = {
  scenario: { type: 'string', multiple: true },
  keep: { type: 'boolean' },
  prometheus: { type: 'boolean' },
  json: { type: 'boolean' },
  list: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** What was asked for, or one line that says what is wrong with it. */
export function readArguments(
  argv: readonly string[],
  names: readonly string[],
): Arguments | { readonly wrong: string } {
  const { values, tokens } = parseArgs({ args: [...argv], options: OPTIONS, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'positional')
      return { wrong: `unexpected argument "${token.value}"${hint(token.value, names)}` };
    if (token.kind !== 'option') continue;
    if (!Object.hasOwn(OPTIONS, token.name)) {
      return {
        wrong: `unknown option "${token.rawName}"${hint(token.rawName, Object.keys(OPTIONS).map(withDashes))}`,
      };
    }
    if (token.name !== 'scenario') {
      if (token.value !== undefined) return { wrong: `${token.rawName} takes no value` };
    } else if (token.value === undefined || !names.includes(token.value)) {
      const value = token.value ?? '';
      return { wrong: `unknown scenario "${value}"${hint(value, names)}; --list shows all` };
    }
  }
  const isTextAlone = values.help === true || values.list === true;
  if (values.prometheus === true && values.keep !== true && !isTextAlone) {
    return { wrong: '--prometheus needs --keep: without it everything ends with the last scenario' };
  }
  // Without `strict` the parser's types allow what was ruled out just above.
  const scenarios = values.scenario as string[] | undefined;
  return {
    scenarios,
    keep: values.keep === true,
    prometheus: values.prometheus === true,
    json: values.json === true,
    list: values.list === true,
    help: values.help === true,
  };
}

function withDashes(name: string): string {
  return `--${name}`;
}

function hint(text: string, names: readonly string[]): string {
  let nearest: string | undefined;
  let least = Math.max(2, Math.floor(text.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(text, name);
    if (distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest === undefined ? '' : `, did you mean ${nearest}?`;
}

function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}
