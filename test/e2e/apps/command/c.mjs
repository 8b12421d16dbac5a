export const c = 3;
export const same = 2;
