/**
 * Puts a method of its own on one object, to be found by nobody who lists the object's properties. It stays as it was
 * where it cannot be given one.
 */
export function putOwnMethod(owner: object, name: string, method: (...args: never[]) => unknown): void {
  Reflect.defineProperty(owner, name, {
    value: method,
    configurable: true,
    writable: true,
    enumerable: false,
  });
}
