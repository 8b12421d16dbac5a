/** By name. They are called inside the service only. */
export const outgoingScenes: Readonly<Record<string, unknown>>;
