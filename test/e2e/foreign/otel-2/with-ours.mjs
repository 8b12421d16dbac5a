// The instrumentation of ours in the list of a 2.x SDK.
import { createRequire } from 'node:module';
import { TimeBudgetInstrumentation } from '../../../../dist/instrumentation/index.js';

const require = createRequire(import.meta.url);
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici');
const { NodeSDK } = require('@opentelemetry/sdk-node');

const instrumentations = [
  new HttpInstrumentation(),
  new UndiciInstrumentation(),
  new TimeBudgetInstrumentation(),
];
new NodeSDK({ instrumentations }).start();
await import('../../apps/service.mjs');
