/** Metrics of this package itself and of the process it runs in. */
import { counter, gauge, type MetricDefinition } from './definition.ts';

export const PROCESS_METRICS = {
  violations: counter(
    'time_budget.violations',
    '{violation}',
    ['violation'],
    'Findings that should not happen: a call given more than was left or started after the end, two layers that repeat one operation, a degraded answer where none may be.',
  ),
  labelOverflow: counter(
    'time_budget.label_overflow',
    '{value}',
    ['folded_label'],
    'Records whose label value was folded into other.',
  ),
  internalErrors: counter(
    'time_budget.internal_errors',
    '{error}',
    [],
    'Faults inside this package that were kept from the service.',
  ),
  policyInfo: gauge('time_budget.policy_info', '{policy}', ['policy_version'], 'Always 1.'),
  loopDelay: gauge(
    'time_budget.loop_delay.seconds',
    's',
    [],
    'Longest that an arrival or an answer of the last 15 to 30 seconds lay unnoticed because the loop was busy.',
  ),
  heapUsed: gauge(
    'time_budget.heap_used.bytes',
    'By',
    [],
    "V8's heap in use, new objects aside: they have a room of their own.",
  ),
  heapLimit: gauge(
    'time_budget.heap_limit.bytes',
    'By',
    [],
    'Most that it can be, beyond which the process ends: --max-old-space-size where it is set.',
  ),
  openFiles: gauge('time_budget.open_files', '{file}', [], 'Open file descriptors. Linux only.'),
  openFilesLimit: gauge('time_budget.open_files_limit', '{file}', [], 'Most there can be. Linux only.'),
} as const satisfies Record<string, MetricDefinition>;
