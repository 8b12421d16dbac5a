/**
 * By hand, for libraries without an adapter here: messages that are taken and sent, and calls. Every function is safe to
 * call anywhere: where the package was not started, the work just runs.
 */
export { type MessageHeaders, messageHeaders } from './message-headers.ts';
export { type CallOptions, type ManualCall, recordCall } from './record-call.ts';
export { type MessageOptions, takeMessage } from './take-message.ts';
