/** What a TraceQL query reads. */
import { parser } from '@grafana/lezer-traceql';

export interface ParsedTraceql {
  readonly error: string | undefined;
  /** Names of span attributes, without the scope. */
  readonly spanAttributes: readonly string[];
}

/** Grafana's variables may stay where they stand in texts. */
export function parseTraceql(text: string): ParsedTraceql {
  let error: string | undefined;
  const spanAttributes: string[] = [];
  parser.parse(text).iterate({
    enter: ({ node }) => {
      if (node.type.isError)
        error ??= `character ${node.from + 1}: …${text.slice(node.from, node.from + 30)}`;
      if (node.name !== 'AttributeField' || node.getChild('Span') === null) return;
      const name = node.getChild('Identifier');
      if (name !== null) spanAttributes.push(text.slice(name.from, name.to));
    },
  });
  return { error, spanAttributes };
}
