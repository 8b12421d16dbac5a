/** Starts a program that observes the demo, and waits until it answers. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanup } from './cleanup.ts';
import { endKept, spawnKept } from './kept-program.ts';

interface Launch {
  readonly name: string;
  readonly path: string;
  readonly folder: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdout?: number;
  /** Answers with success when the program is ready. */
  readonly readyUrl: string;
}

export interface Running {
  readonly cleanup: Cleanup;
  /** Told when it ends by itself. */
  readonly onFailure: (error: Error) => void;
}

const READY_MS = 60_000;
const POLL_MS = 50;
const MAX_LOG_LENGTH = 2000;

/** For what a program writes; `launch` removes it at the end. Throws when the end has begun. */
export function newFolder(name: string, cleanup: Cleanup): string {
  // What is added to a clean-up that is over is never undone.
  if (cleanup.hasBegun) throw new Error('stopped while starting');
  return mkdtempSync(join(tmpdir(), `time-budget-demo-${name}-`));
}

/** Resolves when it is ready; throws, with its last words, when it ends or is not ready in a minute. */
export async function launch(
  { name, path, folder, args, env, stdout, readyUrl }: Launch,
  { cleanup, onFailure }: Running,
): Promise<void> {
  const child = spawnKept({
    path,
    args,
    folder,
    env: { PATH: process.env.PATH, ...env },
    signal: 'TERM',
    stdout: stdout ?? 'ignore',
  });
  cleanup.add(() => endKept(child, folder));
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-MAX_LOG_LENGTH);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once('close', (code, signal) => {
      if (cleanup.hasBegun) return;
      const error = new Error(`${name} ended (${signal ?? code}):\n${log}`);
      onFailure(error);
      reject(error);
    });
  });
  // Once it is ready, `onFailure` is who is told.
  ended.catch(() => undefined);
  const giveUpAt = performance.now() + READY_MS;
  const isReady = async () => (await fetch(readyUrl)).ok;
  while (!(await Promise.race([isReady().catch(() => false), ended]))) {
    if (cleanup.hasBegun) throw new Error('stopped while starting');
    if (performance.now() > giveUpAt) throw new Error(`${name} does not answer at ${readyUrl}:\n${log}`);
    await sleep(POLL_MS);
  }
}
