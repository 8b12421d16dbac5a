// The OpenTelemetry operator loads this file with `--require`, the only flag it knows. The package needs `--import`,
// which deploy/kubernetes/instrumentation.yaml puts into NODE_OPTIONS before it, but only where the container has
// no NODE_OPTIONS of its own. Then this is the one place from which it can be told.
const { isMainThread } = require('node:worker_threads');

const FLAG = '--import /otel-auto-instrumentation-nodejs/otel-time-budget/dist/instrumentation/register.js';

const flags = [process.env.NODE_OPTIONS ?? '', ...process.execArgv].join(' ');
if (isMainThread && !/otel-time-budget\/\S*register/.test(flags)) {
  process.stderr.write(
    `otel-time-budget: not loaded: the container has a NODE_OPTIONS of its own; add ${FLAG}\n`,
  );
}
