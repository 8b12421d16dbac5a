/** What clients do to an Express service. */
import { type Play, request, type Wire } from '../../support/stage.ts';

type Server = 'express4' | 'express5';

function exchange(server: Server, line: string, headers: readonly string[] = [], body = ''): Play {
  return async (stage, scene) => {
    const wire = stage.wire(server).send(request(line, scene, ['Connection: close', ...headers], body));
    await wire.ends();
    await stage.says(scene, 'response close');
    return wire.transcript;
  };
}

function leave(server: Server, line: string, how: Parameters<Wire['leave']>[0], last: string): Play {
  return async (stage, scene) => {
    const wire = stage.wire(server).send(request(line, scene));
    await stage.says(scene, 'started');
    await wire.leave(how).ends();
    await stage.says(scene, last);
    await stage.says(scene, 'request close');
    return wire.text;
  };
}

const BOTH = (server: Server): Readonly<Record<string, Play>> => {
  const get = (path: string, headers: readonly string[] = []) => exchange(server, `GET ${path}`, headers);
  const post = (path: string, type: string, body: string) =>
    exchange(server, `POST ${path}`, [`Content-Type: ${type}`, `Content-Length: ${body.length}`], body);
  return {
    route: get('/items/7?a=1&a=2'),
    head: exchange(server, 'HEAD /items/7'),
    options: exchange(server, 'OPTIONS /items/7'),
    'wrong method': exchange(server, 'DELETE /items/7'),
    'no route': get('/nothing'),
    'path that cannot be decoded': get('/items/%zz'),
    'parameter that is refused': get('/items/bad'),
    'handlers one after another': get('/passing/on'),
    "next('route')": get('/passing/route'),
    pattern: get('/pattern/12'),
    'chained route': get('/chained'),
    'JSON body': post('/json', 'application/json', '{"a":1}'),
    'JSON body that is none': post('/json', 'application/json', '{"a":'),
    'JSON body that is too large': post('/json', 'application/json', `"${'x'.repeat(200)}"`),
    'JSON body that is cut off': async (stage, scene) => {
      const headers = ['Content-Type: application/json', 'Content-Length: 20'];
      const wire = stage.wire(server).send(request('POST /json', scene, headers, '{"a":'));
      await wire.leave('fin').ends();
      await stage.says(scene, 'response close');
      return wire.text;
    },
    form: post('/urlencoded', 'application/x-www-form-urlencoded', 'a=1&b=%20'),
    file: get('/file'),
    'static file': get('/static/file.txt'),
    'static file, a part': get('/static/file.txt', ['Range: bytes=2-3']),
    'not modified': get('/items/7', ['If-None-Match: W/"17-bxFhzFJ6tJVKSJhPUA6vFmFB2B4"']),
    redirect: get('/redirect'),
    cookie: get('/cookie'),
    stream: get('/stream'),
    throws: get('/throws'),
    'throws after the head': get('/throws-late'),
    'passes an error': get('/passes-error'),
    'passes a text': get('/passes-text'),
    'sends twice': get('/sends-twice'),
    'router with parameters': get('/tenants/acme/detail/5'),
    'router under another path': get('/t/acme/detail/5'),
    "next('router')": get('/tenants/acme/leave'),
    'router that throws': get('/tenants/acme/throws'),
    'sub-app': get('/sub/hello'),
    'sub-app with its own errors': get('/sub/fails'),
    'error page': get('/page'),
    'client leaves a handler: FIN': leave(server, 'GET /slow', 'fin', 'goes on false true'),
    'client leaves a handler: reset': leave(server, 'GET /slow', 'reset', 'goes on false true'),
    'client leaves a middleware': leave(server, 'GET /slow-middleware', 'reset', 'handler runs false'),
  };
};

const FIVE: Readonly<Record<string, Play>> = {
  rejects: exchange('express5', 'GET /rejects'),
  'rejects with nothing': exchange('express5', 'GET /rejects-nothing'),
  'returns a thenable': exchange('express5', 'GET /returns-thenable'),
};

function named(prefix: string, plays: Readonly<Record<string, Play>>): [string, Play][] {
  return Object.entries(plays).map(([name, play]) => [`${prefix}: ${name}`, play]);
}

/**
 * In development the page of an error shows its stack, and that differs: with somebody listening, Express 5 calls
 * handlers by way of its channel; Express 4 is wrapped. So what is compared is the message and where it was thrown.
 */
function pageInDevelopment(server: Server): Play {
  return async (stage, scene) => {
    const wire = stage.wire(`${server} in development`);
    await wire.send(request('GET /page', scene, ['Connection: close'])).ends();
    return wire.transcript
      .replace(/^Content-Length: \d+/m, 'Content-Length: ...')
      .replace(/(?<= &nbsp; &nbsp;at .*?)<br>.*(?=<\/pre>)/, '');
  };
}

export const EXPRESS: Readonly<Record<string, Play>> = Object.fromEntries([
  ...named('express 4', { ...BOTH('express4'), 'error page in development': pageInDevelopment('express4') }),
  ...named('express 5', {
    ...BOTH('express5'),
    ...FIVE,
    'error page in development': pageInDevelopment('express5'),
  }),
]);
