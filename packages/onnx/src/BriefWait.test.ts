/** When the event loop waits for a batch in its thread, and what it does with a run that takes longer. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import { noParameters } from "@nereid/core/internal/request/Request"
import { Effect, Exit } from "effect"
import { Worker } from "node:worker_threads"
import { file, slow } from "../../../test/fixtures/onnx.ts"
import { BriefWait } from "./BriefWait.ts"
import { instances } from "./Instances.fixture.ts"
import * as Slots from "./Slots.ts"
import type { Spawn } from "./WorkerInstance.ts"

/** Runs of 50 µs are known, and the loop has been idle for 10 ms when the last batch ended. */
const known = (nanos = 50_000): BriefWait => {
  const wait = new BriefWait()
  for (let run = 0; run < 16; run++) wait.ran(nanos)
  wait.ended(10)
  return wait
}

describe("the wait", () => {
  it("is a few times as long as the longest of the last runs", () => {
    const wait = known()
    assert.closeTo(wait.limit(11), 0.3, 1e-9)
    wait.ran(200_000)
    assert.closeTo(wait.limit(11), 0.9, 1e-9)
    for (let run = 0; run < 16; run++) wait.ran(10_000)
    assert.closeTo(wait.limit(11), 0.14, 1e-9)
  })

  it("is never longer than a millisecond", () => {
    assert.strictEqual(known(500_000).limit(11), 1)
  })

  it("does not happen before sixteen runs are known, or after a long one", () => {
    const wait = new BriefWait()
    for (let run = 0; run < 15; run++) wait.ran(50_000)
    assert.strictEqual(wait.limit(1), 0)
    wait.ran(50_000)
    assert.isAbove(wait.limit(1), 0)
    wait.ran(500_001)
    assert.strictEqual(wait.limit(1), 0)
  })

  it("does not happen if the loop was not idle since the last batch: requests may wait in sockets", () => {
    assert.strictEqual(known().limit(10), 0)
    assert.isAbove(known().limit(10.01), 0)
  })

  it("does not happen for the next 64 batches after one in vain", () => {
    const wait = known()
    wait.missed()
    for (let batch = 0; batch < 64; batch++) assert.strictEqual(wait.limit(11), 0)
    assert.isAbove(wait.limit(11), 0)
  })
})

class Held extends Model.Service<Held>()("held", {
  inputs: { X: Tensor.FP32(64) },
  outputs: { Y: Tensor.FP32(64) },
  maxBatchSize: 4,
}) {}

const request = {
  id: "",
  inputs: [Tensor.make("FP32", [1, 64], new Float32Array(64))],
  rows: 1,
  parameters: noParameters,
  deadline: undefined,
}

/** A control word that neither side uses. */
const HOLD = 8

/** A thread that answers each batch at once, as if it had run for 1 µs, or when it is not held any more. */
const answers = `
  const { parentPort, workerData } = require("node:worker_threads")
  const control = new Int32Array(workerData.memory, 0, 32)
  const durations = new Float64Array(workerData.memory, 0, 16)
  parentPort.postMessage({ _tag: "Loaded", provider: "cpu", refused: [] })
  for (let sequence = 0; ; sequence++) {
    Atomics.wait(control, 0, sequence)
    if (control[1 + (sequence & 3)] === 0) break
    Atomics.wait(control, ${HOLD}, 1)
    durations[12 + (sequence & 3)] = 1000
    Atomics.store(control, 17 + (sequence & 3), 0)
    Atomics.store(control, ${Slots.DONE}, sequence + 1)
    Atomics.notify(control, ${Slots.DONE})
  }`

const answering = Effect.gen(function* () {
  let control = new Int32Array(new SharedArrayBuffer(128))
  const spawn: Spawn = (options) => {
    control = Slots.control(options.workerData.memory)
    return new Worker(answers, { ...options, eval: true })
  }
  const [instance] = yield* instances(Held.definition, { file: yield* file(slow(64, 2)) }, spawn)
  if (instance === undefined) return yield* Effect.die("there is one instance")
  return { instance, control }
})

/** The loop has nothing else to do for a moment. */
const idle = Effect.promise(async () => {
  const { idle: before } = performance.eventLoopUtilization()
  while (performance.eventLoopUtilization().idle <= before) await new Promise((resolve) => setTimeout(resolve, 1))
})

/** Whether the batch has settled before `execute` has returned, and its end. */
const execute = (instance: Instance) => {
  let hasSettled = false
  const ended = new Promise<boolean>((resolve) =>
    instance.execute(Batch.make([request]), (exit) => {
      hasSettled = true
      resolve(Exit.isSuccess(exit))
    }),
  )
  return { atOnce: hasSettled, ended }
}

/** Executes lone batches until the loop waits for one. */
const untilAtOnce = Effect.fnUntraced(function* (instance: Instance) {
  for (;;) {
    yield* idle
    const { atOnce, ended } = execute(instance)
    assert.isTrue(yield* Effect.promise(() => ended))
    if (atOnce) return
  }
})

it.live("a lone batch of a model with short runs ends while the loop waits for it", () =>
  Effect.scoped(Effect.flatMap(answering, ({ instance }) => untilAtOnce(instance))),
)

it.live("a run that takes longer than the wait ends beside the loop", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const { instance, control } = yield* answering
      yield* untilAtOnce(instance)
      yield* idle
      Atomics.store(control, HOLD, 1)
      const { atOnce, ended } = execute(instance)
      assert.isFalse(atOnce)
      Atomics.store(control, HOLD, 0)
      Atomics.notify(control, HOLD)
      assert.isTrue(yield* Effect.promise(() => ended))
      yield* untilAtOnce(instance)
    }),
  ),
)
