/**
 * The Node versions whose synchronous module hooks work (`engines` of package.json; a test holds them together).
 * Nothing is imported here and the syntax is plain, so that an older Node can read it and say so.
 */
const RANGE = '^22.22.3 || ^24.11.1 || >=26';
const FIRST_OF_LINE: Readonly<Record<number, readonly [minor: number, patch: number]>> = {
  22: [22, 3],
  24: [11, 1],
};
const FIRST_MAJOR = 26;

/** One line for a Node that is too old, with what to do; undefined for one that will do. */
export function nodeComplaint(version: string): string | undefined {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map((part) => Number.parseInt(part, 10));
  if (major >= FIRST_MAJOR) return undefined;
  const first = FIRST_OF_LINE[major];
  if (first !== undefined && (minor > first[0] || (minor === first[0] && patch >= first[1])))
    return undefined;
  return `needs Node ${RANGE}, this is ${version}: update Node; until then the service runs without it`;
}
