import { describe, expect, test } from 'vitest';
import { commits, connectError, isConnectTimeout, readFault } from '../../instrumentation/pg/pg-ending.ts';

const CALM = { connecting: false, limitReached: false };

function serverError(code: string, message = 'x'): Error {
  return Object.assign(new Error(message), { code, severity: 'ERROR' });
}

describe('what an error says', () => {
  test.each([
    ['42703', 'column "a" does not exist', 'answered'],
    ['40001', 'could not serialize access', 'answered'],
    ['25P02', 'current transaction is aborted', 'answered'],
    ['57014', 'canceling statement due to statement timeout', 'timed_out'],
    ['57014', 'canceling statement due to user request', 'aborted'],
    ['55P03', 'canceling statement due to lock timeout', 'timed_out'],
    ['55P03', 'could not obtain lock on row in relation "a"', 'answered'],
    ['25P04', 'terminating connection due to transaction timeout', 'timed_out'],
    ['25P03', 'terminating connection due to idle-in-transaction timeout', 'failed'],
    ['57P01', 'terminating connection due to administrator command', 'failed'],
    ['57P05', 'terminating connection due to idle-session timeout', 'failed'],
    ['08006', 'connection failure', 'failed'],
    ['53300', 'too many clients already', 'answered'],
  ] as const)('%s %s: %s, and the server is done', (code, message, ending) => {
    expect(readFault(serverError(code, message), CALM)).toEqual({ ending, server: 'answered' });
  });

  test('57014 in another language: the limit that has passed tells', () => {
    const error = serverError('57014', 'storniere Anfrage wegen Zeitüberschreitung');
    expect(readFault(error, { connecting: false, limitReached: true }).ending).toBe('timed_out');
    expect(readFault(error, { connecting: false, limitReached: false }).ending).toBe('aborted');
    const request = serverError('57014', 'canceling statement due to user request');
    expect(readFault(request, { connecting: false, limitReached: true }).ending).toBe('aborted');
  });

  test.each([
    ['Query read timeout', 'timed_out', 'silent'],
    ['timeout expired', 'timed_out', 'silent'],
    ['timeout exceeded when trying to connect', 'timed_out', 'silent'],
    ['Connection terminated due to connection timeout', 'timed_out', 'silent'],
    ['Connection terminated', 'failed', 'silent'],
    ['Connection terminated unexpectedly', 'failed', 'silent'],
    ['Query values must be an array', 'failed', 'not_asked'],
    ['Client was closed and is not queryable', 'failed', 'not_asked'],
  ] as const)('%s: %s, the server is %s', (message, ending, server) => {
    expect(readFault(new Error(message), CALM)).toEqual({ ending, server });
  });

  test('the code of a socket is no answer, though it may look like an SQLSTATE', () => {
    const error = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', errno: -32, syscall: 'write' });
    expect(readFault(error, CALM)).toEqual({ ending: 'failed', server: 'silent' });
  });

  test('while connecting an error answer is no connection', () => {
    const connecting = { connecting: true, limitReached: false };
    expect(readFault(serverError('28P01', 'password authentication failed'), connecting).ending).toBe(
      'failed',
    );
    expect(readFault(serverError('53300', 'too many clients already'), connecting).ending).toBe('failed');
  });

  test.each([[undefined], [null], ['text'], [{ message: 1, code: 2, severity: 3 }]])(
    'anything may be thrown: %j',
    (error) => {
      expect(readFault(error, CALM)).toEqual({ ending: 'failed', server: 'not_asked' });
      expect(isConnectTimeout(error)).toBe(false);
    },
  );
});

test('a timeout of the connection is told from that of a statement', () => {
  expect(isConnectTimeout(new Error('timeout exceeded when trying to connect'))).toBe(true);
  expect(isConnectTimeout(new Error('Query read timeout'))).toBe(false);
});

test.each([
  ['the last before', 94, false],
  ['the first that a timer may have ended', 95, true],
])('an error without details, with a limit of 100: %s', (_, at, isTimeout) => {
  expect(isConnectTimeout(connectError('an error', 0, 100, at))).toBe(isTimeout);
  expect(connectError('an error', 0, undefined, at)).toBe('an error');
  expect(connectError(undefined, 0, 100, at)).toBeUndefined();
});

test.each([
  ['COMMIT', true],
  ['  commit;', true],
  ['end', true],
  ['END TRANSACTION', true],
  ["prepare transaction 'x'", true],
  ['begin; insert into a values (1); commit', true],
  ['/* traceparent=1 */ COMMIT', true],
  ['select committed from a', false],
  ['select ending from a', false],
  ['rollback', false],
  ['prepare a as select 1', false],
  [undefined, false],
  [Buffer.from('commit'), false],
])('G4: %s ends a transaction: %s', (text, expected) => {
  expect(commits(text)).toBe(expected);
});
