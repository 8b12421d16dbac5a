// biome-ignore lint/suspicious/noImportCycles: what the test is about
import { a } from './a.mjs';

export const b = 2;
export const same = 1;
export const later = () => a;
