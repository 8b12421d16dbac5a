/** A measurement that is only told beside the conditions it was made under, and compared under equal ones. */

export interface Conditions {
  /** When original demand arrived. */
  readonly arrivals: string;
  /** What was asked for. */
  readonly tasks: string;
  /** What happened to the dependency, and when. */
  readonly dependency: string;
  /** Of the configuration in force, as the services themselves tell it. */
  readonly policyVersion: string;
}

export interface Experiment<F> {
  readonly conditions: Conditions;
  readonly originals: number;
  /** A model's figures are no measurement and stand on no side of a comparison. */
  readonly source: 'measured' | 'model';
  readonly figures: F;
}

export interface Comparison<F> {
  readonly without: F;
  readonly with: F;
}

/**
 * Two runs side by side. Throws Error where they differ in anything but the configuration, where they do not differ
 * in that, or where one of them was not measured.
 */
export function compare<F>(without: Experiment<F>, other: Experiment<F>): Comparison<F> {
  for (const { source, conditions } of [without, other]) {
    if (source !== 'measured') throw new Error(`${conditions.policyVersion}: figures of a ${source}`);
  }
  for (const key of ['arrivals', 'tasks', 'dependency'] as const) {
    const [a, b] = [without.conditions[key], other.conditions[key]];
    if (a !== b) throw new Error(`${key} differ: ${a} / ${b}`);
  }
  if (without.originals !== other.originals) {
    throw new Error(`originals differ: ${without.originals} / ${other.originals}`);
  }
  if (without.conditions.policyVersion === other.conditions.policyVersion) {
    throw new Error(`the same policy twice: ${other.conditions.policyVersion}`);
  }
  return { without: without.figures, with: other.figures };
}
