/** The dependency that a policy names, as the calls to it have it. */
import type { CallTarget } from '../core/call.ts';
import { OTHER } from '../core/terms.ts';
import type { Recorder } from '../recorder.ts';
import type { DependencySettings } from '../telemetry/config-settings.ts';

/** By its configured name, else as a host. */
export function findTarget(
  recorder: Recorder,
  name: string,
): { readonly target: CallTarget; readonly settings: DependencySettings | undefined } {
  // In plain JavaScript it can be left out; the caller is about to throw an error of its own.
  if (typeof name !== 'string')
    return { target: { dependency: OTHER, workKind: 'other' }, settings: undefined };
  const { dependencies } = recorder.config;
  const settings = Object.hasOwn(dependencies, name) ? dependencies[name] : undefined;
  const found = settings ?? recorder.config.dependencyFor(...splitHost(name));
  if (found !== undefined) {
    const dependency = recorder.series.dependencies.fold(found.name);
    return { target: { dependency, workKind: 'other' }, settings: found };
  }
  // The name of a budget's dependency is a name; else it is taken as the calls to it are.
  if (recorder.retries.of(name) !== undefined) {
    return { target: { dependency: recorder.series.dependencies.fold(name), workKind: 'other' }, settings };
  }
  return { target: recorder.calls.target(splitHost(name)[0], splitHost(name)[1], 'other'), settings };
}

function splitHost(name: string): [host: string, port: number | undefined] {
  const match = /^(.*):([0-9]{1,5})$/.exec(name);
  return match === null ? [name, undefined] : [match[1] ?? name, Number(match[2])];
}
