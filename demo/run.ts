/** The demo: plays the scenarios against three real services and shows where each request's time went. */
import { type Arguments, HELP, readArguments } from './arguments.ts';
import { Cleanup } from './cleanup.ts';
import { findObservers, startObservers } from './observers.ts';
import { cell, type Line, plainText, styledText } from './page.ts';
import { type Played, play, type Stage, sendBaseline } from './player.ts';
import { startStage } from './processes.ts';
import { drawOverview, drawScenario } from './report.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

const WIDTH = 100;
/** The first requests of a process are slow; they belong to no scenario. */
const WARM_UP_REQUESTS = 12;
const WARM_UP_AT_ONCE = 2;
/** On a busy machine; nobody waits for it but who is told of a failure. */
const END_IS_KNOWN_AFTER_MS = 2_000;
/** What a shell reports for a program that ended by a signal. */
const SIGNAL_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

const cleanup = new Cleanup();
const failed = Promise.withResolvers<never>();
// Whoever waits next sees it; until then it must not count as unhandled.
failed.promise.catch(() => undefined);

for (const [signal, code] of Object.entries(SIGNAL_CODES)) {
  process.on(signal, () => {
    void cleanup.run().then(() => process.exit(code));
  });
}

process.exitCode = await main();

async function main(): Promise<number> {
  const names = SCENARIOS.map(({ name }) => name);
  const wanted = readArguments(process.argv.slice(2), names);
  if ('wrong' in wanted) {
    console.error(wanted.wrong);
    return 1;
  }
  if (wanted.help) console.log(HELP);
  else if (wanted.list) for (const { name, title } of SCENARIOS) console.log(`${name.padEnd(20)}${title}`);
  else return run(chosen(wanted.scenarios), wanted);
  return 0;
}

/** The healthy scenario always comes first: without what is usual there is no verdict. */
function chosen(names: readonly string[] | undefined): readonly Scenario[] {
  if (names === undefined) return SCENARIOS;
  return SCENARIOS.filter(({ name }) => name === 'healthy' || names.includes(name));
}

async function run(scenarios: readonly Scenario[], { json, keep, prometheus }: Arguments): Promise<number> {
  const say = (line: Line) => {
    if (!json) console.log(styledText(line, process.stdout));
  };
  // Before the scenarios, so that nobody waits for them to learn what is missing.
  const observers = prometheus ? findObservers() : undefined;
  for (const note of observers?.notes ?? []) console.error(note);
  try {
    say([
      cell(
        'Where the time of a request went: three real services and PostgreSQL, watched by otel-time-budget.',
      ),
    ]);
    say([cell('gateway → orders → PostgreSQL and inventory; none of them imports anything of it.', 'dim')]);
    say([cell('█ while it was of use   ░ after the deadline, or after the caller had gone', 'dim')]);
    say([]);
    say([cell('Starting PostgreSQL and the services …', 'dim')]);
    const stage = await Promise.race([startStage(cleanup, failed.reject), failed.promise]);
    await sendBaseline(stage, WARM_UP_REQUESTS, WARM_UP_AT_ONCE);
    const all: Played[] = [];
    for (const [i, scenario] of scenarios.entries()) {
      say([]);
      say([cell(`${i + 1}/${scenarios.length} ${scenario.title}`, 'bold')]);
      const played = await Promise.race([play(scenario, stage), failed.promise]);
      for (const line of drawScenario(played, WIDTH)) say(line);
      all.push(played);
    }
    say([]);
    for (const line of drawOverview(all)) say(line);
    if (json) console.log(JSON.stringify({ node: process.version, scenarios: all }, undefined, 2));
    if (keep) {
      const observing =
        observers === undefined ? [] : startObservers(observers, stage, cleanup, failed.reject);
      await keepRunning(stage, await Promise.race([observing, failed.promise]));
    }
    return 0;
  } catch (error) {
    if (cleanup.hasBegun) return new Promise(() => undefined);
    const cause = await serviceThatEnded(error);
    console.error(cause instanceof Error ? cause.message : cause);
    return 1;
  } finally {
    await cleanup.run();
  }
}

/** A connection to a service breaks a moment before its process is known to have ended, and says less. */
async function serviceThatEnded(error: unknown): Promise<unknown> {
  const nothing = new Promise<unknown>((resolve) => setTimeout(resolve, END_IS_KNOWN_AFTER_MS, error));
  return Promise.race([failed.promise.catch((known: unknown) => known), nothing]);
}

async function keepRunning(stage: Stage, observed: readonly string[]): Promise<void> {
  const lines = [
    '',
    'Still running; Ctrl-C ends it.',
    `  curl -H 'x-request-timeout-ms: 400' '${stage.gatewayUrl}/orders/42?inventory_ms=800'`,
    ...Object.entries(stage.metricsUrls).map(([service, url]) => `  ${service.padEnd(10)} ${url}`),
    ...observed,
  ];
  for (const line of lines) console.error(plainText([cell(line)]));
  await failed.promise;
}
