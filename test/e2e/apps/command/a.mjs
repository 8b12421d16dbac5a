// biome-ignore-all lint/performance/noReExportAll: what the test is about
// biome-ignore-all lint/suspicious/noImportCycles: what the test is about
export { default as http } from 'node:http';
export * from './b.mjs';
export * from './c.mjs';
export const a = 1;
