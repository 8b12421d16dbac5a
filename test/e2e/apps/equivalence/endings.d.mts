/** By name. They are called in a process of their own. */
export const endings: Readonly<Record<string, unknown>>;
