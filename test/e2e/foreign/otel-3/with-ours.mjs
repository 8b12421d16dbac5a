// The same with the instrumentation of ours in the list.
import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { TimeBudgetInstrumentation } from '../../../../dist/instrumentation/index.js';

new NodeSDK({ instrumentations: [getNodeAutoInstrumentations(), new TimeBudgetInstrumentation()] }).start();
await import('../../apps/service.mjs');
