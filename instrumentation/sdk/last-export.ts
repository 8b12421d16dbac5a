/**
 * The last export over OTLP of a process that ends. `process.exit()` leaves no time for a connection, so a thread
 * of its own makes it, and the process waits for that thread: 0.2 s, and under 1 s for a collector that is gone.
 */
import { Worker } from 'node:worker_threads';
import { environment } from '../../src/telemetry/config.ts';
import type { Undo } from '../adapter.ts';
import type { CellProducer } from '../process/metric-producer.ts';
import type { OtlpProtocol } from './environment.ts';
import type { LastExportData } from './last-export-worker.ts';

/** What the process waits for the thread at most. The thread gives up earlier, unless it does not get to run. */
const MAX_WAIT_MS = 5_000;
/** Signals that end a process which does not listen for them. */
const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

export interface LastExportSource {
  readonly otlp: CellProducer;
  readonly protocol: OtlpProtocol;
  /** Asked for at the end only. */
  resourceAttributes(): Readonly<Record<string, unknown>>;
}

/**
 * Exports what was counted since the last export when the process ends by itself, by `process.exit()`, by an
 * exception, or by a signal that nobody listens for. `guard` keeps the service from faults of ours.
 */
export function exportAtExit(source: LastExportSource, guard: (work: () => void) => () => void): Undo {
  const flush = guard(() => exportNow(source));
  process.once('exit', flush);
  const undos = SIGNALS.map((signal) => flushOnLoneSignal(signal, flush));
  return () => {
    process.off('exit', flush);
    for (const undo of undos) undo();
  };
}

function exportNow({ otlp, protocol, resourceAttributes }: LastExportSource): void {
  if (!otlp.hasNews()) return;
  const done = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const data: LastExportData = { done, protocol, attributes: resourceAttributes(), ...otlp.collectNow() };
  // `new URL` is not rewritten by the compiler as an import is.
  const file = import.meta.url.replace('last-export', 'last-export-worker');
  const worker = new Worker(new URL(file), {
    workerData: data,
    // Without the flags of the service: they would load all of it, and us, once more.
    execArgv: [],
    env: { ...environment(), NODE_OPTIONS: '' },
    stdout: true,
    stderr: true,
  });
  worker.on('error', () => {});
  worker.unref();
  Atomics.wait(done, 0, 0, MAX_WAIT_MS);
}

/**
 * A signal that nobody listens for ends the process, and no event is told of it. So this listens as long as it is
 * alone: then the process dies of the signal as before, a moment later. It goes as soon as somebody else comes,
 * for whom a listener besides their own can mean that they need not end the process.
 */
function flushOnLoneSignal(signal: (typeof SIGNALS)[number], flush: () => void): Undo {
  if (process.listenerCount(signal) > 0) return () => {};
  const undo = (): void => {
    process.off(signal, onSignal);
    process.off('newListener', onListener);
  };
  const onSignal = (): void => {
    flush();
    undo();
    process.kill(process.pid, signal);
  };
  const onListener = (event: string | symbol, listener: unknown): void => {
    if (event !== signal || listener === onSignal) return;
    // After the other one is there: with none at all, even for a moment, Node lets go of the signal.
    queueMicrotask(undo);
  };
  process.on(signal, onSignal);
  process.on('newListener', onListener);
  return undo;
}
