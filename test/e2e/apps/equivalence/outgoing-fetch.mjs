// Calls through the builtin fetch.
import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { rejection } from './journal.mjs';

async function get({ log, url }, path, options) {
  const response = await fetch(`${url}${path}`, options);
  const { status, statusText, redirected, type } = response;
  log(
    status,
    statusText,
    redirected,
    type,
    JSON.stringify([...response.headers]),
    new URL(response.url).pathname,
  );
  log('body', await response.text());
}

function fails(path, options) {
  return async ({ log, url }) => log(await rejection(fetch(`${url}${path}`, options)));
}

/** The head comes, the body does not. */
function failsInTheBody(path, options = {}) {
  return async ({ log, url }) => {
    const response = await fetch(`${url}${path}`, options);
    log(response.status);
    log(await rejection(response.text()), response.bodyUsed);
  };
}

export const fetchScenes = {
  'fetch: a text': (o) => get(o, '/ok'),
  'fetch: head': (o) => get(o, '/head', { method: 'HEAD' }),
  'fetch: no content': (o) => get(o, '/204'),
  'fetch: trailers': (o) => get(o, '/trailers'),
  'fetch: early hints': (o) => get(o, '/early'),
  'fetch: post': (o) => get(o, '/ok', { method: 'POST', body: 'a body' }),
  'fetch: post a form': (o) => get(o, '/ok', { method: 'POST', body: new URLSearchParams({ a: '1' }) }),
  'fetch: post a stream': (o) =>
    get(o, '/ok', {
      method: 'POST',
      body: Readable.toWeb(Readable.from([Buffer.from('a'), Buffer.from('b')])),
      duplex: 'half',
    }),
  'fetch: post an async iterable': (o) =>
    get(o, '/ok', {
      method: 'POST',
      body: (async function* () {
        yield Buffer.from('a');
        await sleep(5);
        yield Buffer.from('b');
      })(),
      duplex: 'half',
    }),
  'fetch: headers as pairs': (o) =>
    get(o, '/ok', {
      headers: [
        ['X-A', '1'],
        ['x-a', '2'],
      ],
    }),
  'fetch: headers as an object of the class': (o) => get(o, '/ok', { headers: new Headers({ 'X-A': '1' }) }),
  'fetch: a budget header of the application': (o) =>
    get(o, '/ok', { headers: { 'Time-Budget': 'remaining=5', 'x-request-timeout-ms': '70' } }),
  'fetch: a Request': async (o) => {
    const request = new Request(`${o.url}/ok`, { method: 'POST', body: 'x', headers: { 'x-a': '1' } });
    const response = await fetch(request);
    o.log(response.status, request.bodyUsed, JSON.stringify([...request.headers]), await response.text());
  },
  'fetch: the same Request twice': async (o) => {
    const request = new Request(`${o.url}/ok`, { headers: { 'x-a': '1' } });
    for (let i = 0; i < 2; i++)
      o.log(await (await fetch(request)).text(), JSON.stringify([...request.headers]));
  },
  'fetch: redirects': async (o) => {
    await get(o, '/redirect');
    await get(o, '/redirect', { redirect: 'manual' });
    o.log(await rejection(fetch(`${o.url}/redirect`, { redirect: 'error' })));
    await get(o, '/redirect-307', { method: 'POST', body: 'again' });
    o.log(await rejection(fetch(`${o.url}/redirect-loop`)));
  },
  'fetch: one after another': async (o) => {
    for (let i = 0; i < 4; i++) await get(o, `/ok?${i}`);
  },
  'fetch: all at once': async (o) => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map((i) => fetch(`${o.url}/slow?${i}`).then((r) => r.text())),
    );
    o.log(answers.join());
  },
  'fetch: nobody reads the body': async (o) => {
    const response = await fetch(`${o.url}/ok`);
    o.log(response.status);
    await response.body.cancel();
    await get(o, '/ok');
  },
  'fetch: some of the body': async (o) => {
    const response = await fetch(`${o.url}/half`);
    const reader = response.body.getReader();
    const { value } = await reader.read();
    o.log(Buffer.from(value).toString());
    o.log(await rejection(reader.cancel('enough')));
  },
  'fetch: a clone': async (o) => {
    const response = await fetch(`${o.url}/ok`);
    o.log(await response.clone().text(), await response.text(), await rejection(response.text()));
  },
  'fetch: refused': async (o) => o.log(await rejection(fetch(o.closedUrl))),
  'fetch: reset before the answer': fails('/reset'),
  'fetch: closed before the answer': fails('/close'),
  'fetch: reset in the answer': failsInTheBody('/reset-half'),
  'fetch: closed in the answer': failsInTheBody('/close-half'),
  'fetch: an answer that is none': fails('/malformed'),
  'fetch: a broken chunk': failsInTheBody('/bad-chunk'),
  'fetch: AbortSignal.timeout': async (o) => {
    await get(o, '/ok');
    o.log(await rejection(fetch(`${o.url}/hang`, { signal: AbortSignal.timeout(60) })));
  },
  'fetch: AbortSignal.timeout in the body': async (o) => {
    await get(o, '/ok');
    await failsInTheBody('/half', { signal: AbortSignal.timeout(400) })(o);
  },
  'fetch: aborted before it begins': fails('/ok', { signal: AbortSignal.abort() }),
  'fetch: aborted at once': async (o) => {
    const controller = new AbortController();
    const pending = rejection(fetch(`${o.url}/ok`, { signal: controller.signal }));
    controller.abort();
    o.log(await pending);
  },
  'fetch: aborted with a reason': async (o) => {
    await get(o, '/ok');
    const controller = new AbortController();
    const pending = rejection(fetch(`${o.url}/hang`, { signal: controller.signal }));
    await nextTurn();
    controller.abort(new RangeError('not needed'));
    o.log(await pending);
  },
  'fetch: aborted in the body': async (o) => {
    const controller = new AbortController();
    const response = await fetch(`${o.url}/half`, { signal: controller.signal });
    const pending = rejection(response.text());
    controller.abort('a string');
    o.log(await pending);
  },
  'fetch: a body that fails': async (o) => {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new Error('no more'));
      },
    });
    o.log(await rejection(fetch(`${o.url}/ok`, { method: 'POST', body, duplex: 'half' })));
  },
  'fetch: wrong arguments': async (o) => {
    const wrong = [
      ['nonsense'],
      [`${o.url}/`, { headers: { 'x a': '1' } }],
      [`${o.url}/`, { body: 'x' }],
      ['ftp://a/'],
      [],
    ];
    for (const args of wrong) o.log(await rejection(fetch(...args)));
  },
  'fetch: own storage': async (o) => {
    const own = new AsyncLocalStorage();
    await Promise.all(
      ['a', 'b', 'c'].map((value) =>
        own.run(value, async () => {
          const response = await fetch(`${o.url}/slow?${value}`);
          o.log(value, own.getStore());
          await response.text();
          o.log(value, own.getStore());
        }),
      ),
    );
  },
  'fetch: a signal that many calls share': async (o) => {
    const { signal } = new AbortController();
    await Promise.all(
      Array.from({ length: 12 }, (_, i) => fetch(`${o.url}/ok?${i % 2}`, { signal }).then((r) => r.text())),
    );
    o.log('done');
  },
};
