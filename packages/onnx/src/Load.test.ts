/** Errors of loading an .onnx file; a failed load leaves no worker behind. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Duration, Effect, Fiber, Layer, Logger } from "effect"
import { dirname, join } from "node:path"
import type { Worker } from "node:worker_threads"
import { hasFifos, makeFifo } from "../../../test/fixtures/fifo.ts"
import { addSub, external, file, model, node, reshapeToPairs, value } from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"
import { instances } from "./Instances.fixture.ts"
import type { OnnxOptions } from "./Instances.ts"
import { type Spawn, spawn } from "./WorkerInstance.ts"

class AddSub extends Model.Service<AddSub>()("add_sub", {
  inputs: { A: Tensor.FP32(4), B: Tensor.FP32(4) },
  outputs: { SUM: Tensor.FP32(4), DIFFERENCE: Tensor.FP32(4) },
  maxBatchSize: 8,
}) {}

const good = addSub("FP32", ["batch", 4])

/** The error of loading a file with these bytes. */
const failure = (bytes: Uint8Array, options: Partial<OnnxOptions> = {}) =>
  Effect.scoped(
    Effect.gen(function* () {
      const path = yield* file(bytes)
      const error = yield* Effect.flip(Layer.build(Onnx.layer(AddSub, { ...options, file: path })))
      assert.equal(error._tag, "OnnxLoadError")
      assert.equal(error.file, path)
      const beginning = `cannot load model 'add_sub' from '${path}': `
      assert.isTrue(error.message.startsWith(beginning), error.message)
      return { error, reason: error.message.slice(beginning.length) }
    }),
  )

/** Counts the threads that were started and have not exited. */
const counting = () => {
  const threads = new Set<Worker>()
  let started = 0
  const counted: Spawn = (options) => {
    const thread = spawn(options)
    started += 1
    threads.add(thread)
    thread.once("exit", () => threads.delete(thread))
    return thread
  }
  return { spawn: counted, alive: () => threads.size, started: () => started }
}

describe("files", () => {
  it.live("that are not there", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(Onnx.layer(AddSub, { file: "no/such/model.onnx" })))
      assert.equal(error.message, "cannot load model 'add_sub' from 'no/such/model.onnx': the file does not exist")
    }),
  )

  it.live("that are not models", () =>
    Effect.gen(function* () {
      assert.match((yield* failure(new Uint8Array())).reason, /^it is not an ONNX model: the file contains no graph/)
      const broken = "it is not an ONNX model: the file is truncated or has another format"
      assert.equal((yield* failure(new TextEncoder().encode("no model"))).reason, broken)
      assert.equal((yield* failure(good.subarray(0, 100))).reason, broken)
    }),
  )

  // ONNX Runtime would wait for them in its thread, which cannot be ended.
  it.live.runIf(hasFifos)("with weights that are not in a regular file", () =>
    Effect.gen(function* () {
      const dims = ["batch", 4]
      const bytes = model({
        inputs: [value("A", "FP32", dims), value("B", "FP32", dims)],
        outputs: [value("SUM", "FP32", dims), value("DIFFERENCE", "FP32", dims)],
        nodes: [node("Add", ["A", "W"], ["SUM"]), node("Sub", ["A", "B"], ["DIFFERENCE"])],
        initializers: [external("W", "FP32", [4], "weights.bin")],
      })
      const path = yield* file(bytes)
      const { spawn, started } = counting()
      const weights = join(dirname(path), "weights.bin")
      const load = Effect.flip(Effect.scoped(instances(AddSub.definition, { file: path }, spawn)))
      assert.include((yield* load).message, `weight file ${weights}: the file does not exist`)
      makeFifo(weights)
      assert.include((yield* load).message, `weight file ${weights}: it is a FIFO, expected a regular file`)
      assert.equal(started(), 0)
    }),
  )

  it.live("with another signature: every mismatch in one error", () =>
    Effect.gen(function* () {
      const { error, reason } = yield* failure(addSub("FP32", [1, 5]))
      assert.lengthOf(error.mismatches, 4)
      assert.equal(reason, `its signature differs from the declaration:\n  ${error.mismatches.join("\n  ")}`)
    }),
  )

  it.live("with an operator that the runtime does not know", () =>
    Effect.gen(function* () {
      const dims = ["batch", 4]
      const unknown = model({
        inputs: [value("A", "FP32", dims), value("B", "FP32", dims)],
        outputs: [value("SUM", "FP32", dims), value("DIFFERENCE", "FP32", dims)],
        nodes: [node("Conjure", ["A", "B"], ["SUM", "DIFFERENCE"])],
      })
      assert.match((yield* failure(unknown)).reason, /No Op registered for Conjure/)
    }),
  )
})

it.live("options out of range", () =>
  Effect.gen(function* () {
    assert.equal(
      (yield* failure(good, { instances: [] })).reason,
      "instances must name at least one group, but none was given",
    )
    assert.equal(
      (yield* failure(good, { instances: [{}, { count: 0 }] })).reason,
      "instances[1].count must be an integer of at least 1, but 0 was given",
    )
    const resources = [{ name: "R", count: -1 }]
    assert.equal(
      (yield* failure(good, { instances: [{ rateLimiter: { resources } }] })).reason,
      'instances[0].rateLimiter, count of resource "R", must be an integer of at least 0, but -1 was given',
    )
    assert.equal(
      (yield* failure(good, { instances: [{ rateLimiter: { priority: 0.5 } }] })).reason,
      "instances[0].rateLimiter.priority must be an integer of at least 0, but 0.5 was given",
    )
    assert.equal(
      (yield* failure(good, { instances: 0 })).reason,
      "instances must be an integer of at least 1, but 0 was given",
    )
    assert.match((yield* failure(good, { intraOpThreads: 1.5 })).reason, /^intraOpThreads must be an integer/)
    // @ts-expect-error: the type demands a provider, JavaScript does not
    const none: OnnxOptions["providers"] = []
    assert.equal(
      (yield* failure(good, { providers: none! })).reason,
      "providers must name at least one execution provider, but none was given",
    )
  }),
)

it.live.each([
  [{ times: -1 }, "restart.times must be an integer of at least 0, but -1 was given"],
  [{ times: Infinity }, "restart.times must be an integer of at least 0, but Infinity was given"],
  [{ delay: -5 }, "restart.delay must be a finite time of at least 0, but -5 was given"],
  [{ delay: "-1 second" }, "restart.delay must be a finite time of at least 0, but -1 second was given"],
  // As it may come from JavaScript.
  [{ delay: "soon" as "1 second" }, "restart.delay must be a finite time of at least 0, but soon was given"],
  [{ delay: Duration.infinity }, "restart.delay must be a finite time of at least 0, but Infinity was given"],
] as const)("restart options out of range: %o", ([restart, reason]) =>
  Effect.gen(function* () {
    assert.equal((yield* failure(good, { restart })).reason, reason)
  }),
)

describe("execution providers", () => {
  it.live("that are not there fail the load, by name", () =>
    Effect.gen(function* () {
      assert.match((yield* failure(good, { providers: ["cuda"] })).reason, /^execution provider cuda: /)
      const { reason } = yield* failure(good, { providers: [{ name: "tensorrt", deviceId: 1 }, "cuda"] })
      assert.match(reason, /execution provider tensorrt:1: .*; execution provider cuda: /s)
    }),
  )

  it.live("fall back to those listed after them, with a warning", () => {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ logLevel, message }) => void logged.push([logLevel, message]))
    return Effect.gen(function* () {
      const path = yield* file(good)
      const program = Effect.gen(function* () {
        const A = Tensor.make("FP32", [4], Float32Array.of(1, 2, 3, 4))
        return yield* (yield* AddSub).infer({ A, B: A })
      })
      const layer = Onnx.layer(AddSub, { file: path, providers: ["cuda", "cpu"] })
      const { SUM } = yield* Effect.provide(program, layer)
      assert.deepEqual([...SUM.data], [2, 4, 6, 8])
      assert.match(
        JSON.stringify(logged),
        /Warn.*Instance add_sub_0 uses a fallback execution provider: execution provider cuda: /,
      )
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})

describe("threads", () => {
  it.live("none stays behind a load that fails", () =>
    Effect.gen(function* () {
      const path = yield* file(good)
      const threads = counting()
      const options: OnnxOptions = { file: path, instances: 2, providers: ["cuda"] }
      const error = yield* Effect.flip(Effect.scoped(instances(AddSub.definition, options, threads.spawn)))
      assert.equal(error._tag, "OnnxLoadError")
      assert.isAbove(threads.started(), 0)
      assert.equal(threads.alive(), 0)
    }),
  )

  it.live("none stays behind a scope that closes", () =>
    Effect.gen(function* () {
      const path = yield* file(good)
      const threads = counting()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const built = yield* instances(AddSub.definition, { file: path, instances: 2 }, threads.spawn)
          assert.deepEqual(
            built.map(({ name }) => name),
            ["add_sub_0_0", "add_sub_0_1"],
          )
          assert.equal(threads.alive(), 2)
        }),
      )
      assert.equal(threads.alive(), 0)
    }),
  )

  it.live("an interrupted load is waited for, then stopped", () =>
    Effect.gen(function* () {
      const path = yield* file(good)
      const threads = counting()
      const started = yield* Effect.callback<Fiber.Fiber<unknown, unknown>>((resume) => {
        const counted: Spawn = (options) => {
          queueMicrotask(() => resume(Effect.succeed(fiber)))
          return threads.spawn(options)
        }
        const fiber = Effect.runFork(Effect.scoped(instances(AddSub.definition, { file: path, instances: 2 }, counted)))
      })
      yield* Fiber.interrupt(started)
      assert.equal(threads.started(), 2)
      assert.equal(threads.alive(), 0)
    }),
  )
})

describe("warm-up", () => {
  it.live("every session runs it before the model is there, and nothing of it is counted", () =>
    Effect.gen(function* () {
      const path = yield* file(good)
      const warmUp = { inputs: "random", batchSize: [1, 8], count: 2 } as const
      const layer = Onnx.layer(AddSub, { file: path, instances: 2, warmUp })
      const { model } = yield* Effect.provideContext(AddSub, yield* Layer.build(layer))
      const {
        description: { statistics },
      } = model
      assert.deepEqual([statistics.success.count, statistics.executionCount, statistics.fail.count], [0, 0, 0])
      assert.isTrue(model.life.isReady())
    }),
  )

  it.live("a file that loads and cannot run what it is tried with fails it", () =>
    Effect.gen(function* () {
      class Pairs extends Model.Service<Pairs>()("pairs", {
        inputs: { X: Tensor.FP32("n") },
        outputs: { Y: Tensor.FP32(2) },
        maxBatchSize: 4,
      }) {}
      const path = yield* file(reshapeToPairs())
      const build = (n: number) =>
        Effect.scoped(Layer.build(Onnx.layer(Pairs, { file: path, warmUp: { sizes: { n } } })))
      const failure = yield* Effect.flip(build(3))
      assert.equal(failure._tag, "WarmUpFailed")
      assert.match(failure.message, /^model 'pairs' version 1 has failed its warm-up on instance pairs_0: onnx runtime/)
      yield* build(2)
    }),
  )
})
