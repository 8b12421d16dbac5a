import { InstrumentationNodeModuleDefinition } from '@opentelemetry/instrumentation';
import type { Undo } from '../adapter.ts';

/** A package whose main export is wrapped when the service loads it, by `require` or `import`. */
export function wrappedModule(
  name: string,
  versions: string[],
  wrap: (exports: unknown) => Undo,
): InstrumentationNodeModuleDefinition {
  let undo: Undo | undefined;
  return new InstrumentationNodeModuleDefinition(
    name,
    versions,
    (module: unknown) => {
      undo = wrap(isEsModule(module) ? memberOf(module, 'default') : module);
      return module;
    },
    () => undo?.(),
  );
}

/** A member of anything; undefined where there is none. */
export function memberOf(owner: unknown, name: PropertyKey): unknown {
  return (typeof owner === 'object' && owner !== null) || typeof owner === 'function'
    ? Reflect.get(owner, name)
    : undefined;
}

function isEsModule(module: unknown): boolean {
  return memberOf(module, Symbol.toStringTag) === 'Module';
}
