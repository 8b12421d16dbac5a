// What a service of the equivalence suite says of what it sees: one line per event on stdout.

/** Numbers that are others in each run, with what stands for them. */
const hidden = new Map();

export function hide(number, name) {
  hidden.set(number, name);
}

/** A line that belongs to a scene. Written at once, so that the order of lines is the order of events. */
export function log(scene, ...words) {
  let text = words.join(' ');
  for (const [number, name] of hidden) text = text.replaceAll(number, name);
  process.stdout.write(`${scene}: ${text}\n`);
}

/** Name, code, message and causes: all that an application decides by. */
export function tell(error, depth = 0) {
  if (!(error instanceof Error) && typeof error !== 'object') return String(error);
  if (error === null || depth > 5) return '...';
  const own = [error.constructor?.name, error.name, error.code, error.errno, error.syscall, error.message];
  // OpenSSL's errors begin with the number of a thread.
  own.push(own.pop().replace(/[0-9A-F]{16}(?=:error)/, ''));
  const extra = Object.keys(error).filter(
    (key) => !['code', 'errno', 'syscall', 'address', 'port'].includes(key),
  );
  const text = `[${own.map(String).join('|')}${extra.length > 0 ? `|+${extra.sort()}` : ''}]`;
  const causes = [error.cause, ...(error.errors ?? [])].filter((cause) => cause !== undefined);
  return [text, ...causes.map((cause) => tell(cause, depth + 1))].join(' < ');
}

/** Logs these events of an emitter as they come. */
export function watch(scene, name, emitter, events) {
  for (const event of events) {
    emitter.on(event, (...args) => {
      const detail = args.map((arg) => (arg instanceof Error ? tell(arg) : ''));
      log(scene, name, event, ...detail.filter(Boolean));
    });
  }
  return emitter;
}

export function rejection(promise) {
  return promise.then(
    (value) => `no error but ${String(value)}`,
    (error) => tell(error),
  );
}
