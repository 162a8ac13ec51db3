/**
 * The vocabulary of models, for contracts and servers. `Model.Service` declares a model; `Model.each`, `Model.batch`,
 * `Model.requests`, `Model.stream` and `Model.streamBatch` provide it from code; `Model.sequence`,
 * `Model.sequenceBatch`, `Model.sequenceStream` and `Model.perSequence` one with sequences. `Model.bind` declares and
 * provides one in a single call. Defined in Definition.ts and in the files of handler/ that have the names of these
 * functions. `Model.iterate` (IterateHandler.ts) runs all requests step by step.
 */
export type { Batched, Definition, DefinitionOptions, Input, InputBatch, Sample } from "./model/Definition.ts"
export { type ModelClass, Service } from "./call/ModelClass.ts"
export type { CallOptions, Inference } from "./call/Inference.ts"
export type { Session, SessionOptions, Sessions } from "./call/Session.ts"
export type { BatchingOptions } from "./model/Batching.ts"
export { batch, type BatchHandler } from "./handler/BatchHandler.ts"
export { bind, type BindOptions, type Bound, type BoundHandler, type BoundModel, type Named } from "./handler/Bind.ts"
export { each, type EachHandler } from "./handler/EachHandler.ts"
export type { HandledBatch } from "./handler/HandledBatch.ts"
export type { JoinedBatch } from "./handler/JoinedBatch.ts"
export type { HandlerOptions, StreamOptions } from "./handler/Handler.ts"
export type { GroupOptions, InstancesOption } from "./instance/InstancePlan.ts"
export { family, type FamilyOptions, onDemand, type OnDemandOptions } from "./lifecycle/Family.ts"
export { orUnavailable } from "./lifecycle/Unavailable.ts"
export type { WarmUp, WarmUpOptions, WarmUps } from "./model/WarmUpOptions.ts"
export { WarmUpFailed } from "./provide/WarmUpFailed.ts"
export { type ModelRequest, requests, type RequestsHandler } from "./handler/RequestsHandler.ts"
export { type OpenedSequence, perSequence, type PerSequenceHandler } from "./handler/PerSequenceHandler.ts"
export type { Declaration } from "./model/Declared.ts"
export type { SequenceOptions, SequenceType } from "./model/SequenceOptions.ts"
export {
  iterate,
  type IterateHandler,
  type IterationOptions,
  type StepBatch,
  type StepResult,
} from "./handler/IterateHandler.ts"
export { sequence, type SequenceHandler } from "./handler/SequenceHandler.ts"
export { sequenceBatch, type SequenceBatchHandler } from "./handler/SequenceBatchHandler.ts"
export { sequenceStream, type SequenceStreamHandler } from "./handler/SequenceStreamHandler.ts"
export type {
  HandledPosition,
  HandledSequence,
  SequenceBatch,
  SequenceBatchResult,
  SequenceResponse,
  SequenceResult,
} from "./handler/HandledSequence.ts"
export type { ResponseCacheOptions } from "./cache/ResponseCache.ts"
export { stream, type StreamHandler } from "./handler/StreamHandler.ts"
export { streamBatch, type StreamBatchHandler } from "./handler/StreamBatchHandler.ts"
