// A machine whose wall clock is wrong, and can be set while a request runs. Nothing else is touched.
const Real = Date;
let offsetMs = Number(process.env.CLOCK_OFFSET_MS ?? 0);

class ShiftedDate extends Real {
  constructor(...args) {
    if (args.length === 0) super(Real.now() + offsetMs);
    else super(...args);
  }

  static now() {
    return Real.now() + offsetMs;
  }
}
Object.defineProperty(ShiftedDate, 'name', { value: 'Date' });
globalThis.Date = ShiftedDate;
globalThis.stepClock = (ms) => {
  offsetMs += ms;
};
