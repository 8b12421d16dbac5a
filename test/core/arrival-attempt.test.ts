import { describe, expect, test } from 'vitest';
import { readArrivalAttempt } from '../../src/core/arrival-attempt.ts';

const FIRST = { attempt: 1, repeated: false };
const NOTHING = { attempt: undefined, repeated: false };

describe('which attempt an arrival is', () => {
  test.each([
    ['nothing said', {}, NOTHING, FIRST],
    ['our own first', {}, { attempt: 1, repeated: false }, FIRST],
    ['our own second', {}, { attempt: 2, repeated: true }, { attempt: 2, repeated: true }],
    [
      'a first attempt of a repeat (P-21)',
      {},
      { attempt: 1, repeated: true },
      { attempt: 1, repeated: true },
    ],
    ['an ordinal without the mark', {}, { attempt: 2, repeated: false }, { attempt: 2, repeated: true }],
    ["Envoy's first", { 'x-envoy-attempt-count': '1' }, NOTHING, FIRST],
    ["Envoy's third", { 'x-envoy-attempt-count': '3' }, NOTHING, { attempt: 3, repeated: true }],
    ['gRPC, one before', { 'grpc-previous-rpc-attempts': '1' }, NOTHING, { attempt: 2, repeated: true }],
    ['gRPC, none before', { 'grpc-previous-rpc-attempts': '0' }, NOTHING, FIRST],
    [
      'the largest of them',
      { 'x-envoy-attempt-count': '2', 'grpc-previous-rpc-attempts': '3' },
      { attempt: 3, repeated: true },
      { attempt: 4, repeated: true },
    ],
    ['at most', { 'grpc-previous-rpc-attempts': '9999' }, NOTHING, { attempt: 9_999, repeated: true }],
  ])('%s', (_, headers, own, expected) => {
    expect(readArrivalAttempt(headers, own, true)).toEqual(expected);
  });

  test.each(['', '-1', '2.5', '1e3', '99999', 'two', ' 2', '2, 3'])(
    'an unusable count is ignored: "%s"',
    (text) => {
      const headers = { 'x-envoy-attempt-count': text, 'grpc-previous-rpc-attempts': text };
      expect(readArrivalAttempt(headers, NOTHING, true)).toEqual(FIRST);
    },
  );

  test('a header sent twice is ignored, and so is any count of a sender that is not trusted', () => {
    expect(readArrivalAttempt({ 'x-envoy-attempt-count': ['2', '3'] }, NOTHING, true)).toEqual(FIRST);
    expect(readArrivalAttempt({ 'x-envoy-attempt-count': '3' }, NOTHING, false)).toEqual(FIRST);
  });
});
