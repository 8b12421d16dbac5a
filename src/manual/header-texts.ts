/** Headers of a message as texts, the way node:http has those of a request. */
import type { Headers } from '../core/received.ts';
import { MAX_HEADER_LENGTH } from '../core/wire.ts';

/** More are not looked at, of headers and of values of one header. */
const MAX_HEADERS = 256;
const MAX_VALUES = 16;

/** Kafka clients give Buffers, and lists of them for a repeated key; AMQP gives whatever was put in, numbers too. */
export function headerTexts(headers: unknown): Headers {
  const texts: Record<string, string | string[]> = Object.create(null);
  if (typeof headers !== 'object' || headers === null) return texts;
  let count = 0;
  for (const key of Object.keys(headers)) {
    if (++count > MAX_HEADERS) break;
    const value: unknown = Reflect.get(headers, key);
    const values = Array.isArray(value) ? value.slice(0, MAX_VALUES).map(valueText) : [valueText(value)];
    const known = values.filter((text) => text !== undefined);
    if (known.length === 0) continue;
    const name = key.toLowerCase();
    const before = texts[name];
    const all = before === undefined ? known : [before, ...known].flat();
    texts[name] = all.length === 1 ? (all[0] ?? '') : all;
  }
  return texts;
}

/** Cut where the reader can still see that it is too long. */
function valueText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (!(value instanceof Uint8Array)) return undefined;
  const { buffer, byteOffset, byteLength } = value;
  return Buffer.from(buffer, byteOffset, Math.min(byteLength, MAX_HEADER_LENGTH + 1)).toString('latin1');
}
