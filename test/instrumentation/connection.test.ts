import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { Connection } from '../../instrumentation/http-server/connection.ts';
import type { Exchange } from '../../instrumentation/http-server/exchange.ts';

/** All that a connection looks at. */
function exchange(isFinished = false): Exchange {
  return { response: {} as ServerResponse, isFinished } as Exchange;
}

test('one after the other: none is open in between', () => {
  const connection = new Connection();
  for (const one of [exchange(), exchange()]) {
    connection.opened(one);
    expect(connection.exchangeOf(one.response)).toBe(one);
    connection.ended(one);
    expect(connection.exchangeOf(one.response)).toBeUndefined();
  }
  expect(connection.close()).toEqual([]);
});

test('those that are over without anybody having said so are told apart', () => {
  const connection = new Connection();
  const [a, b, c] = [exchange(true), exchange(), exchange(true)];
  expect(connection.unheard()).toEqual([]);
  for (const one of [a, b, c]) connection.opened(one);
  expect(connection.unheard()).toEqual([a, c]);
  connection.ended(c);
  expect(connection.unheard()).toEqual([a]);
});

test('pipelined: each is found until it ends, in any order; the rest is open when the connection ends, once', () => {
  const connection = new Connection();
  const [a, b, c, d] = [exchange(), exchange(), exchange(), exchange()];
  for (const one of [a, b, c, d]) connection.opened(one);
  for (const one of [a, b, c, d]) expect(connection.exchangeOf(one.response)).toBe(one);
  connection.ended(b);
  connection.ended(b);
  connection.ended(d);
  for (const one of [b, d]) expect(connection.exchangeOf(one.response)).toBeUndefined();
  for (const one of [a, c]) expect(connection.exchangeOf(one.response)).toBe(one);
  expect(connection.close()).toEqual([a, c]);
  expect(connection.close()).toEqual([]);
});
