/** The series that the recording rules make: their names, and the labels that each keeps. */
import { readOptions } from '../rules/options.ts';
import { recordingRules, recordNames, unusefulRatio } from '../rules/records.ts';
import { createVocabulary, type Vocabulary } from '../rules/vocabulary.ts';

const WORDS = defaultWords();

export const RECORDED = recordNames(WORDS);

/** Shares of ended requests that were not useful, by the windows of the two alerts that page. */
export const UNUSEFUL = [
  { window: WORDS.suffix('burnFastWindow'), name: unusefulRatio(WORDS, 'burnFastWindow') },
  { window: WORDS.suffix('burnMediumWindow'), name: unusefulRatio(WORDS, 'burnMediumWindow') },
] as const;

/** From how many times the allowance an alert tells it, beginning with "just used up". */
export const BURN_FACTORS = [
  WORDS.numbers.burnSlowestFactor,
  WORDS.numbers.burnMediumFactor,
  WORDS.numbers.burnFastFactor,
] as const;

/** A name begins with the label that it keeps beside the service's. */
export function recordedSeries(): ReadonlyMap<string, readonly string[]> {
  return new Map(recordingRules(WORDS).map(({ record }) => [record, record.split(':').slice(0, 1)]));
}

/** The names do not depend on any option but the windows, which the dashboards take as they are by default. */
function defaultWords(): Vocabulary {
  const read = readOptions({});
  if ('problems' in read) throw new RangeError(read.problems.join('\n'));
  return createVocabulary(read.options);
}
