/**
 * Every number of the rules, with its default, its bounds and the reason for it. The command line, its help, the
 * checks and the table in docs/alerts.md are all made from this list. Thresholds are local decisions: the defaults
 * are where to begin, not what is right for a service.
 */

/** `share` is between 0 and 1, both excluded; a `duration` is given as Prometheus writes it. */
export type ParameterKind = 'share' | 'number' | 'duration';

export interface Parameter {
  readonly kind: ParameterKind;
  readonly default: number | string;
  /** Only for `number`: lowest and highest that are taken. */
  readonly range?: readonly [number, number];
  readonly why: string;
}

function share(fallback: number, why: string) {
  return { kind: 'share', default: fallback, why } as const;
}
function number(fallback: number, range: readonly [number, number], why: string) {
  return { kind: 'number', default: fallback, range, why } as const;
}
function duration(fallback: string, why: string) {
  return { kind: 'duration', default: fallback, why } as const;
}

/** Named after the alert that they belong to. `Window` is looked back over, `For` is how long it must hold. */
export const PARAMETERS = {
  objective: share(
    0.99,
    'Share of the ended requests that are to be useful. At 93 % and less, 14.4 times what may fail is more than all.',
  ),
  scrapeInterval: duration('15s', 'How often Prometheus scrapes, or the service exports.'),
  evaluationInterval: duration('30s', 'How often the rules run.'),
  rateWindow: duration(
    '5m',
    'Window of every rate: at least four scrapes, so that one that is missed does no harm.',
  ),
  leastPerSecond: number(
    0.1,
    [0, 1e6],
    'Fewer events per second than this are no base for a share: 30 in five minutes.',
  ),
  burnLeastFailures: number(
    10,
    [1, 1e6],
    'Events that a window must have = this / (factor × (1 − objective)), so that no page hangs on a few requests.',
  ),
  burnFastFactor: number(14.4, [1, 1e4], 'Uses up 2 % of the allowance of 30 days within an hour. Pages.'),
  burnFastWindow: duration('1h', 'Long window of it.'),
  burnFastShortWindow: duration('5m', 'Short window: ends the alert soon after the fault.'),
  burnFastFor: duration('2m', 'Two or three scrapes more, against a single bad one.'),
  burnMediumFactor: number(6, [1, 1e4], '5 % of the allowance within six hours. Pages.'),
  burnMediumWindow: duration('6h', 'Long window of it.'),
  burnMediumShortWindow: duration('30m', 'Short window of it.'),
  burnMediumFor: duration('15m', 'Half of the short window.'),
  burnSlowFactor: number(3, [1, 1e4], '10 % of the allowance within a day. A ticket.'),
  burnSlowWindow: duration('1d', 'Long window of it.'),
  burnSlowShortWindow: duration('2h', 'Short window of it.'),
  burnSlowFor: duration('1h', 'Half of the short window.'),
  burnSlowestFactor: number(1, [0.1, 1e4], 'The allowance is used up just as fast as it is given. A ticket.'),
  burnSlowestWindow: duration('3d', 'Long window of it.'),
  burnSlowestShortWindow: duration('6h', 'Short window of it.'),
  burnSlowestFor: duration('3h', 'Half of the short window.'),
  exhaustedShare: share(
    0.5,
    'Share of the repeats asked for that found the budget empty. At exactly this, silent.',
  ),
  exhaustedRecentWindow: duration(
    '3m',
    'Refusals must go on in this window. One minute of them stands in a window of 5m for six, and would pass `for`; with 2m, Prometheus 3 sees gaps in refusals that come every 2 min.',
  ),
  exhaustedFor: duration('5m', 'A budget that is empty for a moment has done its work.'),
  exhaustedKeep: duration('5m', 'Against flapping: empty for 40 s in every 2 min is one alert.'),
  drainingFill: share(0.25, 'Balance as a share of the capacity, of the lowest instance.'),
  drainingFor: duration('5m', 'As long as for the alert that it comes before.'),
  lowSuccessFor: duration('10m', 'Longer than the restart of a dependency.'),
  withoutEffectShare: number(
    0.95,
    [0.01, 1],
    'Attempts that still arrive, as a share of those before: less of a fall than this is none.',
  ),
  withoutEffectOffset: duration('15m', 'What "before" is.'),
  withoutEffectRatio: number(
    1.2,
    [1, 100],
    'Attempts per original; at less, the repeats are few whoever makes them.',
  ),
  withoutEffectFor: duration('15m', 'The effect of a budget needs its own window first.'),
  amplificationRatio: number(1.5, [1, 100], 'Attempts per original: every second operation is tried twice.'),
  amplificationUseful: share(
    0.8,
    'Useful requests as a share of those before. Many attempts alone are what retries are for, and no alert.',
  ),
  amplificationOffset: duration(
    '1h',
    'What "before" is. Where traffic swings within the hour, a shorter one.',
  ),
  amplificationFor: duration('10m', 'Self-feeding, so no longer; a deployment takes less.'),
  wasteShare: share(0.1, 'Share of the time in which a dependency was busy that lay after the deadline.'),
  wasteBusy: number(0.5, [0, 1e6], 'Calls in flight on average; under it, waste costs nobody anything.'),
  wasteFor: duration('10m', 'One slow batch is over by then.'),
  postCancelBusy: number(1, [0, 1e6], 'Pieces of work in flight on average that nobody waits for.'),
  postCancelFor: duration('15m', 'It is a fault in code, and does not go away by itself.'),
  localSpendShare: share(0.5, 'Median share of the budget that is gone before the first call.'),
  localSpendFor: duration('30m', 'Not urgent, and warm-up is over by then.'),
  slowFactor: number(1.5, [1.01, 1000], 'p95 of a dependency against its own day.'),
  slowLeastSeconds: number(
    0.05,
    [0, 3600],
    'p95 in seconds; a dependency that is faster is not what budgets are lost in. Buckets are coarse down there.',
  ),
  slowWindow: duration('1d', 'Its own day: the median of the p95 over this.'),
  slowOffset: duration('1h', 'Ends this long ago, so that the incident is not its own baseline.'),
  slowFor: duration('10m', 'Longer than a restart.'),
  insufficientShare: share(
    0.2,
    'Share of the requests of a caller that came with less than the operation usually takes.',
  ),
  insufficientFor: duration('15m', 'It is a setting in another service, and does not go away by itself.'),
  withoutDeadlineShare: share(0.05, 'Share of the calls to a dependency that nothing at all limits.'),
  withoutDeadlineFor: duration('1h', 'A ticket.'),
  poolWaitSeconds: number(
    0.1,
    [0, 3600],
    'p95 of the wait for a connection: a healthy pool has one at once.',
  ),
  poolWaitFor: duration('5m', 'Before requests run out of time in it.'),
  loopDelaySeconds: number(
    0.25,
    [0.001, 3600],
    'Longest wait in every 15 to 30 s, all through the rate window: a quarter of a budget of one second. A single wait is gone from the metric after 30 s.',
  ),
  loopDelayFor: duration('5m', 'Longer than a start, which computes.'),
  heapShare: share(
    0.85,
    'Lowest heap of the rate window, so after a collection, as a share of its limit. Processes were seen to end from 0.93 on, with 0.89 and more as their lowest of a second.',
  ),
  heapFor: duration('2m', 'The rate window has looked for long enough; near the end it goes fast.'),
  openFilesShare: share(
    0.8,
    'Open descriptors as a share of their limit; those that hang add up for minutes before the rest is used.',
  ),
  openFilesFor: duration('5m', 'Longer than a burst of connections.'),
  shedShare: share(0.01, 'Share of what was offered that was shed.'),
  shedOrdinary: number(
    1.1,
    [0.1, 100],
    'Times the usual load up to which load is ordinary; a surge is what shedding is for.',
  ),
  shedWindow: duration('1d', 'The usual load: the average over this.'),
  shedOffset: duration('1h', 'Ends this long ago.'),
  shedFor: duration('30m', 'Capacity does not come back by itself, and a surge is over by then.'),
  queueAgeShare: share(0.8, 'Age of the oldest as a share of its useful life.'),
  queueAgeFor: duration('2m', 'What waits is lost soon after.'),
  backlogWindow: duration('10m', 'The depth must rise over this.'),
  backlogFor: duration('5m', 'Longer than a burst.'),
  concurrencyShare: share(0.9, 'Share of the permits that are held, on average.'),
  concurrencyFor: duration('10m', 'Longer than a burst, and before all of them are.'),
  degradedFor: duration('1h', 'A mode is for an incident; longer, and its exit is broken or nobody looks.'),
  degradedNotAllowedKeep: duration('15m', 'One answer is enough for a page, and must not end it at once.'),
  waveSeconds: number(
    1,
    [0.01, 10],
    'Seconds after the close within which half of ten seconds of attempts are a wave.',
  ),
  waveLeast: number(20, [1, 1e6], 'Fewer attempts are no wave.'),
  waveWindow: duration('5m', 'A close is a moment, and stands in this for as long.'),
  waveFor: duration(
    '1m',
    'The ten seconds must be over: before that, every attempt was made soon after the close.',
  ),
  waveKeep: duration('15m', 'A close is a moment.'),
  probesPerSecond: number(1, [0, 1e6], 'Of all instances together: each alone keeps its limit.'),
  probesFor: duration('5m', 'A breaker that stays half open.'),
  unknownSeconds: number(
    900,
    [1, 1e6],
    'Age of the oldest outcome that nobody knows: by then somebody asks for it.',
  ),
  unknownFor: duration('5m', 'A run of the reconciliation is over by then.'),
  replayStoppedFor: duration('10m', 'A replay that stops for a moment has done as it should.'),
  violationWindow: duration('1h', 'They are rare: one in an hour is told.'),
  violationFor: duration('5m', 'Against one that a scrape has not settled yet.'),
  missingOffset: duration(
    '1h',
    'Was there this long ago, and is not now. Ends by itself after the same time.',
  ),
  missingFor: duration('10m', 'Longer than a deployment.'),
  faultWindow: duration('1h', 'Folded labels and faults of the package itself: one in an hour is told.'),
  faultFor: duration('15m', 'Not urgent.'),
} as const satisfies Record<string, Parameter>;

export type ParameterName = keyof typeof PARAMETERS;
export type DurationName = {
  [K in ParameterName]: (typeof PARAMETERS)[K]['kind'] extends 'duration' ? K : never;
}[ParameterName];

/** Durations are milliseconds, before scaling. */
export type Numbers = Readonly<Record<ParameterName, number>>;

// The keys are those of PARAMETERS, which Object.keys widens to string.
export const PARAMETER_NAMES = Object.keys(PARAMETERS) as readonly ParameterName[];

/** `burnFastFor` → `burn-fast-for`. */
export function optionName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
