/** The models of the replicas under test. */
import { Model, Tensor } from "@nereid/core"

/** Takes some time, and names the process that has executed it. */
export class Work extends Model.Service<Work>()("work", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32"), PROCESS: Tensor.scalar("INT32") },
}) {}

/** Adds numbers up, and names the process that holds the sum. */
export class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32"), PROCESS: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}
