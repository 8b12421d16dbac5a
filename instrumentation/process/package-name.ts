import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The name in the package.json that the service's main script belongs to, or else its working directory. */
export function packageName(): string | undefined {
  const script = process.argv[1];
  return (script === undefined ? undefined : nameAbove(dirname(script))) ?? nameAbove(process.cwd());
}

function nameAbove(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const name = nameIn(at);
    if (name !== undefined || dirname(at) === at) return name;
  }
}

function nameIn(folder: string): string | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const name =
      typeof manifest === 'object' && manifest !== null && 'name' in manifest ? manifest.name : undefined;
    return typeof name === 'string' && name !== '' ? name : undefined;
  } catch {
    return undefined;
  }
}
