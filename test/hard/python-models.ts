/** The models in Python of the attacks, beside one in code. */
import { Model, Tensor } from "@nereid/core"
import { Python } from "@nereid/python"

export { Zeros, ZerosLive } from "./models.ts"

const file = new URL("python_models.py", import.meta.url)

/** Returns its input. */
export class Counted extends Model.Service<Counted>()("counted", {
  inputs: { COUNT: Tensor.scalar("INT32") },
  outputs: { COUNT: Tensor.scalar("INT32") },
  maxBatchSize: 16,
}) {}

export const CountedLive = Python.layer(Counted, {
  file: new URL("counted/model.py", import.meta.url),
  instances: 2,
  // A process may be killed many times in a row before it has answered.
  restart: { delay: "20 millis", times: 1000 },
})

/** Returns its input, which is large enough for the memory that a process shares with the server. */
export class Block extends Model.Service<Block>()("block", {
  inputs: { BLOCK: Tensor.UINT8(-1) },
  outputs: { BLOCK: Tensor.UINT8(-1) },
}) {}

export const BlockLive = Python.layer(Block, {
  file,
  function: "block",
  restart: { delay: "20 millis", times: 1000 },
})

/** Runs the command of its input. */
export class Misbehaving extends Model.Service<Misbehaving>()("misbehaving", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

export const MisbehavingLive = Python.layer(Misbehaving, {
  file,
  function: "misbehave",
  // On a busy machine, 10,000 prints may take some seconds.
  executeTimeout: "10 seconds",
  maxMemoryBytes: 2 ** 28,
  restart: { delay: "20 millis", times: 1000 },
})
