/**
 * Something of ours kept on an object of a library, for as long as that object lives. It is a private field, put
 * there by a constructor that returns the object it is given: nobody else can see it, and no key of the object
 * changes. A WeakMap says the same at five times the cost (45 against 140 to 290 ns for one set, two gets and a
 * delete; Node 24), and the garbage collector looks at each of its entries.
 */
export interface Attached<Owner extends object, Value> {
  get(owner: Owner): Value | undefined;
  /** undefined takes it off. */
  set(owner: Owner, value: Value | undefined): void;
}

class Given {
  constructor(owner: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the field of the class below goes on this object
    return owner;
  }
}

export function attached<Owner extends object, Value>(): Attached<Owner, Value> {
  return class Field extends Given {
    #value: Value | undefined;

    // As it would be without it, but found at once: the one that V8 puts in its place looks its parent up each time.
    constructor(owner: Owner) {
      super(owner);
    }

    static get(owner: Owner): Value | undefined {
      return #value in owner ? owner.#value : undefined;
    }

    static set(owner: Owner, value: Value | undefined): void {
      if (#value in owner) owner.#value = value;
      else if (value !== undefined) new Field(owner).#value = value;
    }
  };
}
