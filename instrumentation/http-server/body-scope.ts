import type { IncomingMessage } from 'node:http';
import { enterScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import { putOwnMethod } from '../shared/own-method.ts';

/**
 * On Node 24 what the parser brings later than the headers comes without the store (measured), and so would the
 * work of 'data' and 'end' listeners. Every piece comes in through `push`.
 */
export function carryScope(request: IncomingMessage, record: RequestRecord): void {
  const inner = request.push;
  function push(this: IncomingMessage, ...args: Parameters<IncomingMessage['push']>): boolean {
    enterScope(record.handlerScope ?? record);
    return Reflect.apply(inner, this, args);
  }
  putOwnMethod(request, 'push', push);
}

export function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}
