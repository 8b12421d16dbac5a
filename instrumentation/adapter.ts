/**
 * The contract of a library's adapter, and the one guard around every hook: a throw inside a channel
 * subscriber would end the process, so nothing here lets one out. Nobody else calls node:diagnostics_channel.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { diag } from '@opentelemetry/api';
import type { InstrumentationNodeModuleDefinition } from '@opentelemetry/instrumentation';
import type { CallRecorder } from '../src/call-recorder.ts';
import type { Carriage } from '../src/carriage.ts';
import type { Recorder } from '../src/recorder.ts';

export type Undo = () => void;

/** One library: what it listens to and, where it publishes nothing, what it wraps. */
export interface Adapter {
  readonly name: string;
  /** Starts listening; returns its undo. */
  start(hooks: Hooks): Undo;
  /** Modules to wrap when they are loaded, for libraries without channels. */
  modules?(hooks: Hooks): InstrumentationNodeModuleDefinition[];
}

export class Hooks {
  readonly recorder: Recorder;
  readonly calls: CallRecorder;
  readonly carriage: Carriage;
  #reported = false;

  constructor(recorder: Recorder, carriage: Carriage) {
    this.recorder = recorder;
    this.calls = recorder.calls;
    this.carriage = carriage;
    recorder.carriage = carriage;
  }

  /** Monotonic milliseconds. Read once per event and handed on. */
  now(): number {
    return this.recorder.clock.now();
  }

  /** Wraps a hook so that a throw of ours is counted, logged once, and never reaches the service. */
  guard<A extends readonly unknown[]>(hook: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      try {
        hook(...args);
      } catch (error) {
        this.report(error);
      }
    };
  }

  /** Runs a piece of a wrapper that stands between the caller and its library. */
  attempt<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.report(error);
      return undefined;
    }
  }

  /** Subscribes to a channel under the guard. `read` checks and takes apart the message. */
  subscribe(channel: string, onMessage: (message: unknown) => void): Undo {
    // As `guard` does it, for the one argument there is: its list of them would be 100 bytes per event.
    const guarded = (message: unknown): void => {
      try {
        onMessage(message);
      } catch (error) {
        this.report(error);
      }
    };
    subscribe(channel, guarded);
    return () => {
      unsubscribe(channel, guarded);
    };
  }

  report(error: unknown): void {
    try {
      this.recorder.families.internalErrors.cell().add(1);
      if (this.#reported) return;
      this.#reported = true;
      diag.error(
        'otel-time-budget: a hook failed; the service is not affected, figures may be missing',
        error,
      );
    } catch {
      // The logger is the application's, and may throw as well.
    }
  }
}
