/** What each span attribute says, for docs/signals.md. The type makes a missing one an error. */
import { REPEAT_REASONS } from '../src/core/terms.ts';
import type { ATTR } from '../src/telemetry/names.ts';

interface Meaning {
  readonly on: 'server' | 'call' | 'both';
  readonly text: string;
}

export const ATTRIBUTE_MEANINGS: Readonly<Record<keyof typeof ATTR, Meaning>> = {
  received: { on: 'server', text: 'Budget as the caller sent it.' },
  effective: { on: 'server', text: 'Budget after the entry policy (default, ceiling, floor).' },
  source: { on: 'server', text: 'The header, or the default, that it came from.' },
  verdict: { on: 'server', text: 'What the entry policy made of it.' },
  queue: { on: 'server', text: "From arrival until the operation's own handler started." },
  processing: { on: 'server', text: 'From the start of the handler until the end.' },
  spentBeforeFirstCall: { on: 'server', text: 'From arrival until the first call; absent without a call.' },
  remaining: { on: 'server', text: 'Left when the request ended; negative when it was late.' },
  outcome: { on: 'server', text: 'How the request ended; exactly one word.' },
  overrun: { on: 'server', text: 'Time past the deadline; only when there was any.' },
  expiryPhase: { on: 'both', text: 'Phase in progress when the time ran out.' },
  expiryDependency: { on: 'server', text: 'Dependency of the call in progress then, or `none`.' },
  expiryCause: { on: 'server', text: 'The verdict on why: see docs/concepts.md.' },
  cancelSource: { on: 'both', text: 'Who ended it early; the first source is kept.' },
  reserve: { on: 'both', text: 'Kept back for the way back and the reply; left out where it is 0.' },
  caller: { on: 'server', text: 'Service that called, as far as it may be believed.' },
  operation: { on: 'server', text: 'Route template, not the path.' },
  priority: { on: 'server', text: 'Priority class; left out where it is `unset`.' },
  insufficient: { on: 'server', text: 'Arrived with less than the operation usually takes.' },
  operationTypical: { on: 'server', text: 'Usual duration (median) that the verdict was decided on.' },
  mode: { on: 'server', text: '`propagate` or `enforce`; left out in `observe`.' },
  loopBlocked: {
    on: 'server',
    text: 'Upper bound of the time in which this process was busy instead of serving the request.',
  },
  remainingBefore: { on: 'call', text: 'Left when the call was made.' },
  remainingAfter: { on: 'call', text: 'Left when the call had ended; negative when it ended late.' },
  allowance: { on: 'call', text: 'What the call may use: the smallest of its limits.' },
  handedDown: { on: 'call', text: 'What the peer was told at the moment of the send, rounded down.' },
  bindingTerm: { on: 'call', text: 'Which limit decided the allowance.' },
  dependency: { on: 'call', text: 'Configured name, or the host.' },
  dependencyCap: { on: 'call', text: 'The cap of the dependency.' },
  dependencyTypical: { on: 'call', text: 'Usual duration (median) of this dependency.' },
  minimum: { on: 'call', text: 'Least with which this call is useful.' },
  latencyDerived: { on: 'call', text: 'Timeout derived from latency, as configured.' },
  ownTimeout: { on: 'call', text: 'Limit that the application gave the call itself.' },
  dispatchDelay: {
    on: 'call',
    text: 'From making the call until it was really sent; left out where that was at once.',
  },
  postCancel: { on: 'call', text: 'Time worked after the request was cancelled or its deadline had passed.' },
  resetViolation: { on: 'call', text: 'The call or its peer was given more than was left.' },
  refusalReason: { on: 'call', text: 'Why it would not have been made; `observe` makes it all the same.' },
  needed: {
    on: 'server',
    text: 'On the event of a refused repeat: its backoff, its expected duration and the reserve.',
  },
  shedReason: { on: 'server', text: 'Why it was refused for lack of room, where it was.' },
  admissionQueue: { on: 'server', text: 'The gate that it waited at, or that refused it.' },
  admissionWait: { on: 'server', text: 'How long it waited there.' },
  degradedMode: { on: 'server', text: 'The degraded mode that the answer was made in.' },
  degradedAge: {
    on: 'server',
    text: 'How old the oldest part of the degraded answer may be, as the service says.',
  },
  degradedPartial: { on: 'server', text: 'True where something is left out of the degraded answer.' },
  attempt: {
    on: 'both',
    text: 'Ordinal of this attempt; 1 = original. On the server, of the arrival, and only for a repeat.',
  },
  attemptKind: { on: 'call', text: 'What kind of attempt it is: see docs/attempts.md.' },
  attemptSource: { on: 'call', text: '`detected` or `declared`; only for repeats, as the six below.' },
  attemptOwner: { on: 'call', text: 'Who repeats; `unknown` where it was detected only.' },
  attemptReason: {
    on: 'call',
    text: `What became of the attempt before: ${REPEAT_REASONS.map((reason) => `\`${reason}\``).join(', ')}.`,
  },
  attemptWait: { on: 'call', text: 'From the end of the attempt before until the start of this one.' },
  attemptPermitted: {
    on: 'call',
    text: 'Attempts that its owner may make in all, the original included; absent where not known.',
  },
  attemptPaidBy: {
    on: 'call',
    text: '`request_limit` where its owner counts attempts; absent where not known.',
  },
  attemptStop: {
    on: 'call',
    text: 'What would stop the next one, in the words of refusals; absent where not known.',
  },
  policyVersion: { on: 'call', text: 'Version of the policy in force, as configured.' },
  stoppedAfter: {
    on: 'call',
    text: 'How long it went on after another attempt of its operation had won the race.',
  },
  breakerState: {
    on: 'call',
    text: 'State of the circuit breaker that let it through; on the event of a blocked attempt, of the one that did not.',
  },
  breakerProbe: {
    on: 'call',
    text: 'A half-open circuit breaker let it through, to see how the dependency is.',
  },
  fallbackName: {
    on: 'both',
    text: 'Name of the fallback that it was made in; on the server, on its event.',
  },
  fallbackShares: {
    on: 'both',
    text: 'It goes to the dependency that the fallback stands in for; on the server, on its event, any of its calls did.',
  },
  fallbackResult: { on: 'server', text: 'On the event of a fallback: `answered`, `failed`, `refused`.' },
  reconciledResult: {
    on: 'server',
    text: 'On the event of an unknown outcome that was found out: `done`, `not_done`, `abandoned`.',
  },
  replayStop: { on: 'server', text: 'On the event of a replay that was paused: by what.' },
  unknownAge: { on: 'server', text: 'On the same event: how long it had been unknown.' },
  repeated: { on: 'server', text: 'The arrival, or an attempt that it descends from, is a repeat.' },
  detached: { on: 'call', text: 'Made inside detach(): meant to outlive the request.' },
  mayStillRun: { on: 'call', text: 'Given up on without the server being told: it may go on there.' },
  commitState: {
    on: 'call',
    text: '`unknown`: a COMMIT was sent and not answered; it may have taken effect.',
  },
  connectionId: { on: 'call', text: "The server's id of the connection (PostgreSQL: backend pid)." },
};
