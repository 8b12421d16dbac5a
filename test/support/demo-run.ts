/** Runs the demo's player as a user does, in a folder of its own for temporary files. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface DemoRun {
  readonly child: ChildProcess;
  /** Where this run puts its temporary files; its processes have the path in their environment. */
  readonly folder: string;
  stdout: string;
  stderr: string;
  readonly ended: Promise<number | null>;
}

const runs: DemoRun[] = [];

export function startDemo(...args: string[]): DemoRun {
  const folder = mkdtempSync(join(tmpdir(), 'demo-test-'));
  // As /tmp is: the database runs as another user, who makes and removes its own folder there.
  chmodSync(folder, 0o1777);
  const child = spawn(process.execPath, ['demo/run.ts', ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const run: DemoRun = {
    child,
    folder,
    stdout: '',
    stderr: '',
    ended: new Promise((resolve) => child.once('close', resolve)),
  };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    run.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    run.stderr += text;
  });
  runs.push(run);
  return run;
}

/** Ends what still runs and removes its folders. For `afterEach`. */
export async function endDemos(): Promise<void> {
  for (const { child, ended, folder } of runs.splice(0)) {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Processes that have the run's folder in their environment. Empty where /proc does not tell. */
export function processesOf({ folder }: DemoRun): { readonly pid: number; readonly command: string }[] {
  const found: { readonly pid: number; readonly command: string }[] = [];
  for (const pid of process.platform === 'linux' ? readdirSync('/proc') : []) {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      // A zombie has no command any more and waits for nobody here.
      if (command !== '') found.push({ pid: Number(pid), command });
    } catch {
      // It ended while it was looked at.
    }
  }
  return found;
}

export function expectNothingLeft(run: DemoRun): void {
  expect({ processes: processesOf(run), files: readdirSync(run.folder) }).toEqual({
    processes: [],
    files: [],
  });
}
