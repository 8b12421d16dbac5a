import { expect, test } from 'vitest';
import { added, parseExposition } from '../../demo/scrape.ts';

const TEXT = `# HELP time_budget_outcomes_total Ended requests by their one outcome.
# UNIT time_budget_outcomes_total {request}
# TYPE time_budget_outcomes_total counter
time_budget_outcomes_total{operation="GET /orders/:id",outcome="late",note="a \\"b\\" \\\\ c,d"} 3
time_budget_received_seconds_bucket{le="+Inf"} +Inf
time_budget_received_seconds_sum 1.25e-1

not a sample
`;

test('samples with their labels; comments and other lines are left out', () => {
  expect(parseExposition(TEXT)).toEqual([
    {
      name: 'time_budget_outcomes_total',
      labels: { operation: 'GET /orders/:id', outcome: 'late', note: 'a "b" \\ c,d' },
      value: 3,
    },
    { name: 'time_budget_received_seconds_bucket', labels: { le: '+Inf' }, value: Number.POSITIVE_INFINITY },
    { name: 'time_budget_received_seconds_sum', labels: {}, value: 0.125 },
  ]);
});

test('what was added: by series, whatever the order of labels; what did not move is left out', () => {
  const before = parseExposition('a{x="1",y="2"} 5\nb 7\n');
  const after = parseExposition('a{y="2",x="1"} 6\nb 7\nc 2\nd 0\n');
  expect(added(before, after).map(({ name, value }) => [name, value])).toEqual([
    ['a', 1],
    ['c', 2],
  ]);
});
