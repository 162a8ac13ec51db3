/** Declarations of the models whose code is in test/python/models, and the parts that their tests share. */
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { Effect, Logger, Queue } from "effect"
import { python } from "../../../test/fixtures/python.ts"

export { python }

const models = join(import.meta.dirname, "../../../test/python/models")

/** Path of a file of these models. */
export const modelFile = (name: string): string => join(models, `${name}.py`)

export class Numbers extends Model.Service<Numbers>()("numbers", {
  inputs: { x: Tensor.FP32(2) },
  outputs: { y: Tensor.FP32(2) },
  maxBatchSize: 8,
}) {}

/** One number in and out, for functions that read it. */
export class Single extends Model.Service<Single>()("single", {
  inputs: { x: Tensor.scalar("FP32") },
  outputs: { y: Tensor.scalar("FP32") },
  maxBatchSize: 64,
}) {}

export class Unbatched extends Model.Service<Unbatched>()("unbatched", {
  inputs: { x: Tensor.FP32(1, 1) },
  outputs: { y: Tensor.FP32(1, 1) },
}) {}

export class Rows extends Model.Service<Rows>()("rows", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { rows: Tensor.scalar("INT64"), executions: Tensor.scalar("INT64") },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "10 seconds", preferredBatchSizes: [3] },
}) {}

export class Shout extends Model.Service<Shout>()("shout", {
  inputs: { text: Tensor.utf8() },
  outputs: { loud: Tensor.utf8() },
  maxBatchSize: 8,
}) {}

export class Pid extends Model.Service<Pid>()("pid", {
  inputs: { x: Tensor.FP32(1) },
  outputs: { pid: Tensor.scalar("INT64") },
}) {}

/** Of model.py: the text of a request says how to answer it. */
export class Command extends Model.Service<Command>()("command", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

/** Queues log messages as they are logged. */
export const logs = Effect.gen(function* () {
  const lines = yield* Queue.unbounded<string>()
  const layer = Logger.layer([
    Logger.make(({ message, logLevel }) => void Queue.offerUnsafe(lines, `${logLevel}: ${String(message)}`)),
  ])
  const until = (pattern: RegExp) =>
    Queue.take(lines).pipe(Effect.repeat({ until: (line: string) => pattern.test(line) }), Effect.timeout("20 seconds"))
  return { layer, until, left: Queue.clear(lines) }
})

/** Waits until the model takes requests. */
export const ready = ({ life }: RunningModel) =>
  Effect.sleep("5 millis").pipe(Effect.repeat({ until: life.isReady }), Effect.timeout("20 seconds"))

/** The wire's inputs of one text. */
export const textTensor = (text: string) => Tensor.make("BYTES", [1, 1], [new TextEncoder().encode(text)])
