/** What is usual per operation and per dependency: learned, else as configured, else unknown. */
import { type Typical, USUAL_SETTINGS, Usual } from './core/usual.ts';
import type { Config } from './telemetry/config-settings.ts';

export class TypicalDurations {
  readonly #config: Config;
  readonly #beforeRead: (() => void) | undefined;
  readonly #operations = new Map<string, Usual>();
  readonly #dependencies = new Map<string, Usual>();

  /** `beforeRead` has everything learned that was put off. */
  constructor(config: Config, beforeRead?: () => void) {
    this.#config = config;
    this.#beforeRead = beforeRead;
  }

  /** Names are folded label values, so both maps are bounded by the caps. */
  operation(name: string, now: number): Typical | undefined {
    const learned = this.#learned(this.#operations, name, now);
    return learned ?? configured(this.#config.operationSettings(name).typicalMs);
  }

  dependency(name: string, now: number): Typical | undefined {
    const learned = this.#learned(this.#dependencies, name, now);
    return learned ?? configured(this.#config.dependencies[name]?.typicalMs);
  }

  usualOperation(name: string, now: number): Usual {
    return this.#usualOf(this.#operations, name, now);
  }

  usualDependency(name: string, now: number): Usual {
    return this.#usualOf(this.#dependencies, name, now);
  }

  #learned(known: ReadonlyMap<string, Usual>, name: string, now: number): Typical | undefined {
    // The first that is to be learned of it may have been put off.
    if (!known.has(name)) this.#beforeRead?.();
    return known.get(name)?.typical(now);
  }

  #usualOf(known: Map<string, Usual>, name: string, now: number): Usual {
    let usual = known.get(name);
    if (usual === undefined) {
      usual = new Usual(now, USUAL_SETTINGS, this.#beforeRead);
      known.set(name, usual);
    }
    return usual;
  }
}

/** One configured figure stands for the median and, for want of better, for the p95. */
function configured(typicalMs: number | undefined): Typical | undefined {
  return typicalMs === undefined ? undefined : { medianMs: typicalMs, p95Ms: typicalMs };
}
