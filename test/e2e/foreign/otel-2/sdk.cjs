// NodeSDK 2.x, configured by the environment. Its API is 1.9, which ours does not see by itself.
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http');
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici');
const { NodeSDK } = require('@opentelemetry/sdk-node');

new NodeSDK({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] }).start();
