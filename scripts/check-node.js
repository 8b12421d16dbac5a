/**
 * Says in one line that the Node which runs this is too old, before that Node fails with a page of errors.
 * Plain JavaScript of the kind that an old Node can read too. Exit code 1 if it is too old.
 */
import { readFileSync, realpathSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Whether a version satisfies a range made of `^a.b.c` and `>=a.b.c` (`.b` and `.c` optional) and `||`. */
export function satisfies(version, range) {
  const have = numbers(version);
  return range.split('||').some((part) => {
    const text = part.trim();
    const least = numbers(text);
    if (compare(have, least) < 0) return false;
    return text.startsWith('^') ? have[0] === least[0] : text.startsWith('>=');
  });
}

/** The one line for a Node that does not satisfy the range. */
export function complaint(version, range) {
  return (
    `This needs Node ${range}, and ${version} runs it. The project brings its own: were install scripts ` +
    `switched off? Run \`npm ci\` without --ignore-scripts, or use Node >= ${lowest(range)}.`
  );
}

function lowest(range) {
  return range
    .split('||')
    .map((part) => numbers(part))
    .sort(compare)[0]
    .join('.');
}

function numbers(text) {
  const [, major, minor, patch] = /(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(text) || [];
  return [Number(major), Number(minor || 0), Number(patch || 0)];
}

function compare(left, right) {
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  const range = manifest.engines.node;
  if (!satisfies(process.version, range)) {
    console.error(complaint(process.version, range));
    process.exitCode = 1;
  }
}
