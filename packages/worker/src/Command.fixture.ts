/** Model declarations of the tests, for both the main thread and the worker. */
import { Model, Tensor } from "@nereid/core"
import { Schema } from "effect"

/** Does what its text says, in the thread that it runs in. */
export class Command extends Model.Service<Command>()("command", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
  maxBatchSize: 4,
  batching: { maxQueueDelay: "1 minute", preferredBatchSizes: [1], maxQueueSize: 8 },
}) {}

/** The rows of one batch as the handler had them. */
export class Rows extends Model.Service<Rows>()("rows", {
  inputs: { x: Tensor.FP32("n"), text: Tensor.optional(Tensor.BYTES(1)) },
  outputs: { y: Tensor.FP32("n"), rows: Tensor.INT32(1) },
  maxBatchSize: 4,
}) {}

export class Count extends Model.Service<Count>()("count", {
  inputs: { TO: Tensor.scalar("INT32") },
  outputs: { N: Tensor.scalar("INT32"), PULLED: Tensor.scalar("INT32") },
  maxBatchSize: 2,
}) {}

/** Scales by a parameter of each request. */
export class Scale extends Model.Service<Scale>()("scale", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { y: Tensor.FP32(1) },
  parameters: { by: Schema.Finite },
  responseParameters: { together: Schema.Int },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "1 minute", preferredBatchSizes: [4] },
}) {}

/** Model with a different signature from its module's. */
export class OtherRows extends Model.Service<OtherRows>()("rows", {
  inputs: { x: Tensor.FP32("n"), text: Tensor.optional(Tensor.BYTES(1)) },
  outputs: { y: Tensor.FP32("n"), rows: Tensor.INT64(1) },
  maxBatchSize: 4,
}) {}
