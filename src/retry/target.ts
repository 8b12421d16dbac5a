/** The dependency that a policy names, as the calls to it have it. */
import type { NamedTarget } from '../core/call.ts';
import { OTHER } from '../core/terms.ts';
import type { Recorder } from '../recorder.ts';
import type { DependencySettings } from '../telemetry/config-settings.ts';

/** By its configured name, else as a host. */
export function findTarget(
  recorder: Recorder,
  name: string,
): { readonly target: NamedTarget; readonly settings: DependencySettings | undefined } {
  // In plain JavaScript it can be left out; the caller is about to throw an error of its own.
  if (typeof name !== 'string')
    return { target: { name: OTHER, dependency: OTHER, workKind: 'other' }, settings: undefined };
  const { dependencies } = recorder.config;
  const settings = Object.hasOwn(dependencies, name) ? dependencies[name] : undefined;
  const found = settings ?? recorder.config.dependencyFor(...splitHost(name));
  if (found !== undefined) {
    return { target: named(recorder, found.name), settings: found };
  }
  // The name of a budget's dependency is a name; else it is taken as the calls to it are.
  if (recorder.retries.of(name) !== undefined) return { target: named(recorder, name), settings };
  return { target: recorder.calls.target(splitHost(name)[0], splitHost(name)[1], 'other'), settings };
}

function named({ series }: Recorder, name: string): NamedTarget {
  return { name, dependency: series.dependencies.fold(name), workKind: 'other' };
}

function splitHost(name: string): [host: string, port: number | undefined] {
  const match = /^(.*):([0-9]{1,5})$/.exec(name);
  return match === null ? [name, undefined] : [match[1] ?? name, Number(match[2])];
}
