/** Telemetry's own connections: no request or call of the service, and they use nobody's budget. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { runInScope } from '../../src/current.ts';
import { isTracingSuppressed } from '../../src/telemetry/otel-globals.ts';

const exporting = new AsyncLocalStorage<true>();
const servers = new WeakSet<object>();

/** Runs an export of ours, outside of any request. What it calls is not recorded. */
export function runAsOwnTraffic<T>(work: () => T): T {
  return runInScope(undefined, () => exporting.run(true, work));
}

/** Whether the running code exports telemetry: ours, or that of an SDK. Such calls are left out. */
export function isOwnTraffic(): boolean {
  return exporting.getStore() === true || isTracingSuppressed();
}

/** Marks a server as one that only gives out telemetry. */
export function addOwnServer(server: object): void {
  servers.add(server);
}

/** Whether a server only gives out telemetry: what it takes is no request of the service. */
export function isOwnServer(server: object): boolean {
  return servers.has(server);
}
