// A set-up as the documentation of OpenTelemetry has it: NodeSDK 3.x, configured by the environment.
import { getNodeAutoInstrumentations } from '@opentelemetry/auto-instrumentations-node';
import { NodeSDK } from '@opentelemetry/sdk-node';

new NodeSDK({ instrumentations: [getNodeAutoInstrumentations()] }).start();
