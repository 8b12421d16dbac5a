/** What clients do to a plain server. Each scene gives what the client saw. */
import { type Play, request, type Wire } from '../../support/stage.ts';

const CLOSE = 'Connection: close';

/** One exchange on a connection of its own. */
function exchange(line: string, headers: readonly string[] = [], body = ''): Play {
  return async (stage, scene) => {
    const wire = stage.wire().send(request(line, scene, [CLOSE, ...headers], body));
    await wire.ends();
    await stage.says(scene, 'response close');
    return wire.transcript;
  };
}

/** The client leaves once the handler has come so far. */
function leave(
  path: string,
  how: Parameters<Wire['leave']>[0],
  headers: readonly string[] = [],
  body = '',
): Play {
  return async (stage, scene) => {
    const wire = stage.wire().send(request(path, scene, headers, body));
    await stage.says(scene, 'started');
    wire.leave(how);
    await wire.ends();
    await stage.says(scene, 'response close');
    await stage.says(scene, 'request close');
    return wire.text === '' ? '' : wire.transcript;
  };
}

const BUDGETS = [
  'x-request-timeout-ms: 300',
  'X-Request-Timeout-Ms: 200',
  'grpc-timeout: 1S',
  'time-budget: remaining=500, attempt=2, caller=x',
  'Time-Budget: remaining=400',
  'x-envoy-expected-rq-timeout-ms: 0',
  'connect-timeout-ms: -5',
];

export const INCOMING: Readonly<Record<string, Play>> = {
  get: exchange('GET /text'),
  head: exchange('HEAD /json'),
  post: exchange('POST /echo', ['Content-Length: 5'], 'hello'),
  'status, reason, header case, repeated headers': exchange('GET /json'),
  'no content': exchange('GET /empty'),
  'not modified': exchange('GET /not-modified'),
  'http/1.0': async (stage, scene) => {
    const wire = stage.wire().send(`GET /text HTTP/1.0\r\nX-Scene: ${scene}\r\n\r\n`);
    return (await wire.ends()).transcript;
  },
  'chunks and trailers': exchange('GET /trailers', ['TE: trailers']),
  'early hints and processing': exchange('GET /early'),
  'chunked body': exchange(
    'POST /echo',
    ['Transfer-Encoding: chunked'],
    '3\r\nabc\r\n4\r\ndefg\r\n0\r\nx-t: 1\r\n\r\n',
  ),
  'no route': exchange('GET /nothing-here'),
  'handler that throws': exchange('GET /throw'),
  'handler that rejects': exchange('GET /reject'),
  'ends twice, writes late': exchange('GET /twice'),
  'header values that are refused': exchange('GET /invalid'),
  'patched reply': exchange('GET /patched'),
  'response destroyed with an error': exchange('GET /destroy-error'),
  'listeners up to the limit': exchange('GET /listeners'),
  'own storage': async (stage, scene) => {
    const wire = stage.wire();
    wire.send(request('GET /storage', scene));
    await wire.sees('undefined a b');
    wire.send(request('GET /storage', scene, [CLOSE]));
    return (await wire.ends()).transcript;
  },
  'listeners removed': async (stage, scene) => {
    const wire = stage.wire().send(request('GET /remove-listeners', scene, [CLOSE]));
    return (await wire.ends()).transcript;
  },
  'socket destroyed before the reply': exchange('GET /destroy'),
  'socket destroyed in the reply': exchange('GET /destroy-half'),
  'pieces of a body': async (stage, scene) => {
    const wire = stage.wire().send(request('POST /upload', scene, ['Content-Length: 10', CLOSE], '12345'));
    await stage.says(scene, 'started');
    return (await wire.send('67890').ends()).transcript;
  },
  'body that is read late': exchange('POST /paused', ['Content-Length: 5'], 'hello'),
  'body that nobody reads': exchange('POST /unread', ['Content-Length: 5'], 'hello'),
  'body piped back': exchange('POST /pipe', ['Content-Length: 5'], 'hello'),
  'big reply to a slow reader': async (stage, scene) => {
    const wire = stage.wire();
    wire.socket.pause();
    wire.send(request('GET /big', scene, [CLOSE]));
    await stage.says(scene, 'channel http.server.request.start');
    wire.socket.resume();
    await wire.ends();
    return { head: wire.transcript.slice(0, 200), length: wire.text.length, end: wire.end };
  },
  'keep-alive': async (stage, scene) => {
    const wire = stage.wire();
    for (const path of ['text', 'empty', 'json', 'not-modified', 'nothing', 'unread']) {
      const before = wire.text.length;
      wire.send(request(`GET /${path}`, scene));
      await wire.sees(`${wire.text.slice(0, before)}HTTP/1.1 `);
      await stage.says(
        scene,
        'response close',
        ['text', 'empty', 'json', 'not-modified', 'nothing', 'unread'].indexOf(path) + 1,
      );
    }
    return (await wire.send(request('GET /text', scene, [CLOSE])).ends()).transcript;
  },
  pipelined: async (stage, scene) => {
    const wire = stage.wire();
    wire.send(
      request('GET /text', scene) +
        request('POST /echo', scene, ['Content-Length: 3'], 'abc') +
        request('GET /empty', scene) +
        request('GET /text', scene, [CLOSE]),
    );
    return (await wire.ends()).transcript;
  },
  'pipelined, and gone': async (stage, scene) => {
    const wire = stage.wire().send(request('GET /hang', scene) + request('GET /text', scene));
    await stage.says(scene, 'started');
    await wire.leave('reset').ends();
    await stage.says(scene, 'response close', 2);
    return wire.text;
  },
  'gone before the headers are complete': async (stage, scene) => {
    const wire = stage.wire().send(`GET /text HTTP/1.1\r\nX-Scene: ${scene}\r\n`);
    await wire.leave('fin').ends();
    return wire.text;
  },
  'gone before the reply: FIN': leave('GET /hang', 'fin'),
  'gone before the reply: reset': leave('GET /hang', 'reset'),
  'gone in the reply: FIN': leave('GET /half', 'fin'),
  'gone in the reply: reset': leave('GET /half', 'reset'),
  'gone in the upload: FIN': leave('POST /upload', 'fin', ['Content-Length: 10'], '12345'),
  'gone in the upload: reset': leave('POST /upload', 'reset', ['Content-Length: 10'], '12345'),
  'gone in a chunked upload': leave('POST /upload', 'reset', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n'),
  'gone, and the handler writes': leave('GET /late', 'reset'),
  'gone in a pipeline': async (stage, scene) => {
    const wire = stage.wire();
    wire.socket.pause();
    wire.send(request('GET /big', scene));
    await stage.says(scene, 'channel http.server.request.start');
    wire.leave('reset');
    await stage.says(scene, 'response close');
    return wire.end;
  },
  'gone after the reply': async (stage, scene) => {
    const wire = stage.wire().send(request('GET /text', scene));
    await stage.says(scene, 'response close');
    await wire.sees('hello');
    await wire.leave('reset').ends();
    return wire.transcript;
  },
  'reset of an async reader': async (stage, scene) => {
    const wire = stage.wire().send(request('POST /echo', scene, ['Content-Length: 10'], '12345'));
    await stage.says(scene, 'channel http.server.request.start');
    wire.leave('reset');
    await stage.says(scene, 'response close');
    await stage.says(scene, 'request close');
    return wire.text;
  },
  'idle limit with a listener': exchange('GET /idle-limit'),
  'idle limit without': exchange('GET /idle-limit-default'),
  'malformed head': async (stage) => (await stage.wire().send('NOT HTTP\r\n\r\n').ends()).transcript,
  'malformed header': async (stage) =>
    (await stage.wire().send('GET / HTTP/1.1\r\nBad Header: 1\r\n\r\n').ends()).transcript,
  'too many headers': async (stage) =>
    (
      await stage
        .wire()
        .send(`GET / HTTP/1.1\r\nX-A: ${'a'.repeat(17_000)}\r\n\r\n`)
        .ends()
    ).transcript,
  'malformed chunk': async (stage, scene) => {
    const wire = stage.wire().send(request('POST /echo', scene, ['Transfer-Encoding: chunked'], 'zz\r\n'));
    await wire.ends();
    await stage.says(scene, 'response close');
    return wire.transcript;
  },
  upgrade: async (stage, scene) => {
    const wire = stage
      .wire()
      .send(`${request('GET /', scene, ['Connection: upgrade', 'Upgrade: echo'])}ping`);
    await wire.sees('ping');
    wire.socket.end();
    return (await wire.ends()).transcript;
  },
  connect: async (stage, scene) =>
    (await stage.wire().send(request('CONNECT example.com:443', scene)).ends()).transcript,
  '100-continue': async (stage, scene) => {
    const wire = stage
      .wire()
      .send(request('POST /echo', scene, [CLOSE, 'Expect: 100-continue', 'Content-Length: 3']));
    await wire.sees('100 Continue');
    return (await wire.send('abc').ends()).transcript;
  },
  '100-continue, decided by the service': async (stage, scene) => {
    const wire = stage.wire('expecting');
    wire.send(request('POST /', scene, [CLOSE, 'Expect: 100-continue', 'Content-Length: 3']));
    await wire.sees('100 Continue');
    return (await wire.send('abc').ends()).transcript;
  },
  'another expectation': async (stage, scene) => {
    const wire = stage.wire('expecting').send(request('POST /', scene, [CLOSE, 'Expect: coffee']));
    return (await wire.ends()).transcript;
  },
  'server.timeout': async (stage, scene) => {
    const wire = stage.wire('expecting').send(request('GET /', scene));
    return (await wire.ends()).transcript;
  },
  headersTimeout: async (stage) =>
    (await stage.wire('limited').send('GET / HTTP/1.1\r\nHost: a\r\n').ends()).transcript,
  requestTimeout: async (stage, scene) => {
    const wire = stage.wire('limited').send(request('POST /', scene, ['Content-Length: 10'], '12345'));
    await wire.ends();
    await stage.says(scene, 'response close');
    return wire.transcript;
  },
  keepAliveTimeout: async (stage, scene) => {
    const wire = stage.wire('limited').send(request('GET /', scene));
    return (await wire.ends()).transcript;
  },
  'budget headers, conflicting and repeated': exchange('GET /headers', BUDGETS),
  'budget headers with any bytes': async (stage, scene) => {
    // Node refuses control characters by itself.
    const codes = Array.from({ length: 256 }, (_, code) => code).filter(
      (code) => code === 9 || (code >= 32 && code !== 127),
    );
    const value = String.fromCharCode(...codes);
    const wire = stage
      .wire()
      .send(
        request('GET /headers', scene, [CLOSE, `x-request-timeout-ms: ${value}`, `time-budget: ${value}`]),
      );
    return (await wire.ends()).transcript;
  },
  'budget headers of 15 KB': exchange('GET /headers', [
    `time-budget: ${'remaining=1, '.repeat(600)}`,
    `x-request-timeout-ms: ${'9'.repeat(7_000)}`,
  ]),
};
