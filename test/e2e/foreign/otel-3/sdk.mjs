// A set-up as the documentation of OpenTelemetry has it: the module hook, then NodeSDK 3.x, configured by the
// environment.
import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { register } from 'import-in-the-middle/register-hooks.mjs';

register();
new NodeSDK({ instrumentations: [getNodeAutoInstrumentations()] }).start();
