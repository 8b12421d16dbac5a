/** By name. They are called inside the service only. */
export const pgScenes: Readonly<Record<string, unknown>>;
