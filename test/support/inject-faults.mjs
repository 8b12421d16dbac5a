// Loaded after the flag: makes single steps of ours throw, as told on a port of its own. Knows ours by its symbols.
import net from 'node:net';
import { diag } from '@opentelemetry/api';

const { hooks } = globalThis[Symbol.for('otel-time-budget.runtime.1')];
const { recorder, carriage } = hooks;
/** What every call and every request has its methods from. */
const call = recorder.calls.begin(recorder.calls.target('nowhere', 1, 'http'), 0);
const request = recorder.enter({ headers: {}, method: 'GET', path: '/' }, 0);
const above = (object) => Object.getPrototypeOf(Object.getPrototypeOf(object));
const OWNERS = {
  call: above(call),
  request: above(request),
  recorder,
  calls: recorder.calls,
  attempts: recorder.calls.attempts,
  offered: recorder.families.offered,
  series: recorder.series,
  clock: recorder.clock,
  carriage,
  config: recorder.config,
};

// Without a logger nobody would see what is logged.
const log = (...words) => process.stderr.write(`diag: ${words.map(String).join(' ')}\n`);
diag.setLogger({ error: log, warn: log, info() {}, debug() {}, verbose() {} });

let undo = () => {};
let thrown = 0;

function inject(target) {
  undo();
  undo = () => {};
  if (target === 'none') return;
  const [ownerName, method] = target.split('.');
  const owner = OWNERS[ownerName];
  if (owner[method] === undefined) throw new Error(`there is no ${target}`);
  const before = Object.getOwnPropertyDescriptor(owner, method);
  const fail = () => {
    thrown++;
    throw new Error(`injected into ${target}`);
  };
  const isMethod = typeof owner[method] === 'function';
  Object.defineProperty(owner, method, {
    ...(isMethod ? { value: fail } : { get: fail }),
    configurable: true,
  });
  undo = () => {
    if (before === undefined) delete owner[method];
    else Object.defineProperty(owner, method, before);
  };
}

const server = net.createServer((socket) => {
  socket.setEncoding('utf8').on('data', (text) => {
    try {
      inject(text.trim());
      socket.end(`thrown ${thrown} counted ${recorder.families.internalErrors.cell().value}`);
    } catch (error) {
      socket.end(error.message);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(`faults ${server.address().port}`));
server.unref();
