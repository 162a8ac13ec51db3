/**
 * Tests models without ports and sockets: `Testing.model` for tests in Effect, `Testing.start` for all others. Defined
 * in TestModel.ts, TestTime.ts, StartedModel.ts and WireCalls.ts.
 */
export type { AnyModel, Execution } from "./testing/Journal.ts"
export { start, type StartedModel, type StartedModelOf, type StartedSessions } from "./testing/StartedModel.ts"
export { model, type ModelOf, type TestModel, type TestSessions, type Which } from "./testing/TestModel.ts"
export { advance } from "./testing/TestTime.ts"
export type { GenerateDocument, InferDocument, WireCalls } from "./testing/WireCalls.ts"
