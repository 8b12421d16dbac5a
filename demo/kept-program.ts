/** Programs that are not Node, held so that they and their folder go when this process does, whatever it died of. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';

export interface KeptProgram {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Removed when the program has ended. */
  readonly folder: string;
  /** What asks it to end. */
  readonly signal: 'INT' | 'TERM';
  readonly stdout?: 'ignore' | number;
  readonly identity?: { readonly uid?: number; readonly gid?: number };
}

/** A program that does not go within this time after being asked to is killed. */
const STOP_MS = 10_000;
/** Ends the program when standard input closes, which the death of this process does too. */
const KEEPER = `
exec 3<&0
"$@" </dev/null &
program=$!
( cat <&3; kill -"$STOP_SIGNAL" "$program" ) >/dev/null 2>&1 &
wait "$program"
code=$?
rm -rf "$FOLDER"
exit "$code"
`;

/** Its standard error is a pipe that must be read. Ended by a signal, it exits with 128 and the signal's number. */
export function spawnKept({ path, args, env, folder, signal, stdout, identity }: KeptProgram): ChildProcess {
  const stdio: StdioOptions = ['pipe', stdout ?? 'ignore', 'pipe'];
  return spawn('sh', ['-c', KEEPER, 'sh', path, ...args], {
    ...identity,
    cwd: '/',
    env: { ...env, FOLDER: folder, STOP_SIGNAL: signal },
    // A session of its own: Ctrl-C in a terminal reaches this process alone, which then stops it in order.
    detached: true,
    stdio,
  });
}

/** Resolves when the program has ended and its folder is gone. */
export async function endKept(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const closed = new Promise((resolve) => child.once('close', resolve));
    child.stdin?.end();
    const timer = setTimeout(() => {
      // The whole group: the shell alone would leave the program behind.
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, STOP_MS);
    await closed;
    clearTimeout(timer);
  }
  await rm(folder, { recursive: true, force: true });
}
