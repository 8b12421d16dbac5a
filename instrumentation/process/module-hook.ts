/** Lets the modules of a list be wrapped when an ES module imports them. */
import { createRequire, type LoadHookSync, type ResolveHookSync, registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

interface ModuleHook {
  applyOptions(options: { shouldInclude(url: string, specifier: string): boolean }): void;
  readonly resolveSync: ResolveHookSync;
  readonly loadSync: LoadHookSync;
}

/**
 * Installs the hook of import-in-the-middle for these packages and nothing else. `register` of its own module
 * would wrap every module of the service, and can be called once only: a second call, by a set-up of the
 * service's own, would be refused with a warning. Needs a Node that `nodeComplaint` has nothing against.
 */
export async function hookModules(names: readonly string[]): Promise<void> {
  // The copy that @opentelemetry/instrumentation listens to, which need not be the one that we would get.
  const require = createRequire(import.meta.resolve('@opentelemetry/instrumentation'));
  const path = require.resolve('import-in-the-middle/create-hook.mjs');
  // Its own `register` uses it in the same way; it comes without types.
  const { createHook } = (await import(pathToFileURL(path).href)) as {
    createHook(meta: { readonly url: string }): ModuleHook;
  };
  const wanted = new Set(names.flatMap((name) => [name, `node:${name}`]));
  const hook = createHook({ url: pathToFileURL(path.replace('create-hook.mjs', 'hook.mjs')).href });
  hook.applyOptions({ shouldInclude: (_url, specifier) => wanted.has(specifier) });
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      // The main script: the hook would settle the format of one without an extension.
      context.parentURL === undefined
        ? nextResolve(specifier, context)
        : hook.resolveSync(specifier, context, nextResolve),
    load: hook.loadSync,
  });
}
