// Loaded after the flag: tells how many records of requests and of calls are alive. Knows ours by its symbols.
import { queryObjects } from 'node:v8';

const { recorder } = globalThis[Symbol.for('otel-time-budget.runtime.1')].hooks;
const request = recorder.enter({ headers: {}, method: 'GET', path: '/' }, 0).constructor;
const own = recorder.calls.begin(recorder.calls.target('nowhere', 1, 'http'), 0);
recorder.calls.end(own, 'answered', 0);
const call = own.constructor;

globalThis.countRecords = () =>
  queryObjects(request, { format: 'count' }) + queryObjects(call, { format: 'count' });
