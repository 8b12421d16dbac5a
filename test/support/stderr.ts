/**
 * What a process has written to stderr, without what is another in each run, and of each stack only where it begins:
 * a wrapper shows in the frames below, and Node's own frames tell how many listeners an event has.
 */
export function comparable(stderr: string): string {
  const lines = stderr
    .replaceAll(/\(node:\d+\)/g, '(node)')
    .replaceAll(/(?<=MaxListenersExceededWarning.*)\d+/g, 'N')
    // depd's: when, what, and who called.
    .replaceAll(/^\w{3}, \d.* GMT (.* deprecated .*) at .*$/gm, '$1')
    .split('\n');
  let hasBegun = false;
  return lines
    .filter((line) => {
      if (!line.startsWith('    at ')) {
        hasBegun = false;
        return true;
      }
      if (hasBegun || !line.includes('/test/e2e/')) return false;
      hasBegun = true;
      return true;
    })
    .join('\n');
}
