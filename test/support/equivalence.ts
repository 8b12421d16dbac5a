/**
 * Shows that a service behaves the same with and without us: the same steps are played against both, and status,
 * headers, body, error and the reuse of connections are compared.
 */
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

/** One request of the script. Steps run one after another over one keep-alive agent. */
export interface Step {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Leave so long after the request was sent, whatever has come by then. */
  readonly leaveAfterMs?: number;
}

/** What a client can see of one step. Two runs of the same step must give equal observations. */
export interface Observation {
  readonly step: string;
  readonly status: number | undefined;
  readonly statusText: string | undefined;
  /** As on the wire, in order and case, without the date. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  readonly trailers: readonly string[];
  /** Code or name of what the client was told in place of a whole reply. */
  readonly error: string | undefined;
  readonly reusedSocket: boolean;
}

export interface RunningApp {
  readonly port: number;
  stop(): Promise<void>;
}

/** `start` runs the app, with hooks or without: in this process or as a child started with `--import`. */
export async function observeBoth(
  start: (hooked: boolean) => Promise<RunningApp>,
  steps: readonly Step[],
): Promise<{ readonly plain: readonly Observation[]; readonly hooked: readonly Observation[] }> {
  const plain = await observe(await start(false), steps);
  const hooked = await observe(await start(true), steps);
  return { plain, hooked };
}

async function observe(app: RunningApp, steps: readonly Step[]): Promise<Observation[]> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const seen: Observation[] = [];
  try {
    for (const step of steps) seen.push(await play(app.port, agent, step));
  } finally {
    agent.destroy();
    await app.stop();
  }
  return seen;
}

async function play(port: number, agent: http.Agent, step: Step): Promise<Observation> {
  const { method = 'GET', path = '/', headers = {}, body, leaveAfterMs } = step;
  const request = http.request({ host: '127.0.0.1', port, method, path, headers: { ...headers }, agent });
  if (leaveAfterMs !== undefined) void sleep(leaveAfterMs).then(() => request.destroy());
  const observation = {
    step: `${method} ${path}`,
    status: undefined as number | undefined,
    statusText: undefined as string | undefined,
    headers: [] as (readonly [string, string])[],
    body: '',
    trailers: [] as string[],
    error: undefined as string | undefined,
    reusedSocket: false,
  };
  try {
    request.end(body);
    // 'response' always comes with one IncomingMessage.
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    observation.status = response.statusCode;
    observation.statusText = response.statusMessage;
    observation.headers = headerPairs(response.rawHeaders);
    for await (const chunk of response) observation.body += String(chunk);
    observation.trailers = response.rawTrailers;
  } catch (error) {
    observation.error = codeOf(error);
  }
  // An agent gives a socket back a little after the end of the reply.
  await sleep(1);
  return { ...observation, reusedSocket: request.reusedSocket };
}

function headerPairs(raw: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = raw.slice(i, i + 2);
    if (name.toLowerCase() !== 'date') pairs.push([name, value]);
  }
  return pairs;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
