/** What the project promises of its cost, as ratios within one run, and what a run says to it. */
import type { Round } from './comparison.ts';
import type { Workload } from './services.ts';
import { type Spread, spread } from './statistics.ts';
import type { Variant } from './variants.ts';

export interface Verdict {
  readonly name: string;
  readonly limit: number;
  /** Aimed at; undefined where it is the limit itself. */
  readonly goal: number | undefined;
  readonly measured: Spread;
  readonly digits: number;
}

/** Limits that nobody tests on a shared machine: a run reports them, and a person reads the spread beside them. */
export function judge(rounds: readonly Round[]): Verdict[] {
  return [
    {
      name: 'CPU of a service request: OpenTelemetry with us, of OpenTelemetry alone',
      limit: 1.05,
      goal: 1.03,
      measured: cpuRatio(rounds, 'otel_us', 'otel', 'service'),
      digits: 3,
    },
    {
      name: 'CPU of a service request: us without tracing, of bare',
      limit: 1.15,
      goal: 1.1,
      measured: cpuRatio(rounds, 'us', 'bare', 'service'),
      digits: 3,
    },
    {
      name: 'CPU of a hello request: us without tracing, of bare',
      limit: 1.15,
      goal: undefined,
      measured: cpuRatio(rounds, 'us', 'bare', 'hello'),
      digits: 3,
    },
    {
      name: 'bytes that we add to a request in flight and its connections: without tracing',
      limit: 600,
      goal: undefined,
      measured: addedBytes(rounds, 'us', 'bare'),
      digits: 0,
    },
    {
      name: 'bytes that we add to a request in flight and its connections: with OpenTelemetry',
      limit: 600,
      goal: undefined,
      measured: addedBytes(rounds, 'otel_us', 'otel'),
      digits: 0,
    },
  ];
}

/** Ratio of CPU time per request, round by round. */
export function cpuRatio(rounds: readonly Round[], of: Variant, to: Variant, workload: Workload): Spread {
  return spread(rounds.map((round) => round[of][workload].cpuUs / round[to][workload].cpuUs));
}

function addedBytes(rounds: readonly Round[], of: Variant, to: Variant): Spread {
  return spread(rounds.map((round) => round[of].memory.heldBytes - round[to].memory.heldBytes));
}
