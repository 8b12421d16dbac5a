// The tracer of Datadog, registered with OpenTelemetry's API. It prints its traces.
const tracer = require('dd-trace').init({ startupLogs: false, flushInterval: 100 });

new tracer.TracerProvider().register();
