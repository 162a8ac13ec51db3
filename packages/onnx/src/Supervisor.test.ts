/** Worker threads that die: the failures of requests, restarts, and the limit of restarts. */
import { assert, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Request } from "@nereid/core/internal/request/Request"
import { noParameters } from "@nereid/core/internal/request/Request"
import type { InferenceError } from "@nereid/core/Errors"
import type { ExecutionResult, Instance, InstanceStatus } from "@nereid/core/internal/instance/Instance"
import { type Duration, Effect, Exit, Fiber, Result } from "effect"
import { TestClock } from "effect/testing"
import { rmSync } from "node:fs"
import { Worker } from "node:worker_threads"
import { hasFifos, makeFifo } from "../../../test/fixtures/fifo.ts"
import { file, slow } from "../../../test/fixtures/onnx.ts"
import { instances } from "./Instances.fixture.ts"
import type { RestartOptions } from "@nereid/core/internal/instance/Supervisor"
import { type Spawn, spawn } from "./WorkerInstance.ts"

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { X: Tensor.FP32(64) },
  outputs: { Y: Tensor.FP32(64) },
  maxBatchSize: 4,
}) {}

const request: Request = {
  id: "",
  inputs: [Tensor.make("FP32", [1, 64], new Float32Array(64).fill(2))],
  rows: 1,
  parameters: noParameters,
  deadline: undefined,
}

const batch = Batch.make([request])

/** A thread in place of the real one, that loads and then does what the source says. */
const impostor =
  (then: string): Spawn =>
  (options) => {
    const loaded = `require("node:worker_threads").parentPort.postMessage({ _tag: "Loaded", provider: "cpu", refused: [] })`
    return new Worker(`${loaded};${then}`, { ...options, eval: true })
  }

/** Waits on the control words as the worker does, then dies with a batch in its hands, in this way. */
const diesWithBatch = (variant: string) =>
  impostor(`Atomics.wait(new Int32Array(require("node:worker_threads").workerData.memory), 0, 0); ${variant}`)

const throws = diesWithBatch(`throw new Error("out of luck")`)

/** An instance that takes its threads from this list in order, and then repeats the last one. */
const supervised = Effect.fnUntraced(function* (
  spawns: readonly [Spawn, ...Array<Spawn>],
  restart: RestartOptions = {},
  idleTimeout?: Duration.Input,
) {
  const path = yield* file(slow(64, 2))
  const threads: Array<Worker> = []
  const next: Spawn = (options) => {
    const thread = (spawns[threads.length] ?? spawns.at(-1) ?? spawn)(options)
    threads.push(thread)
    return thread
  }
  const [instance] = yield* instances(Slow.definition, { file: path, restart, idleTimeout }, next)
  return { instance: instance!, threads, path }
})

const becomes = (instance: Instance, status: InstanceStatus) =>
  Effect.callback<void>((resume) => {
    const checkStatus = () => {
      if (instance.status() === status) resume(Effect.void)
    }
    instance.onStatusChange = checkStatus
    checkStatus()
  })

const execute = (instance: Instance) =>
  Effect.callback<ExecutionResult, InferenceError>((resume) => void instance.execute(batch, resume))

const responses = (instance: Instance) =>
  Effect.map(execute(instance), ({ outcomes: [outcome] }) => {
    if (outcome === undefined || Result.isFailure(outcome)) throw new Error("no answer")
    return outcome.success.outputs[0]?.data[0]
  })

/** A turn of the event loop, for what threads have posted. */
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

it.effect("an idle thread that dies is started again after the first delay", () =>
  Effect.gen(function* () {
    const { instance, threads } = yield* supervised([spawn], { delay: "1 second" })
    assert.equal(yield* responses(instance), 2)
    yield* Effect.promise(() => threads[0]!.terminate())
    assert.equal(instance.status(), "restarting")
    const refused = yield* Effect.flip(execute(instance))
    assert.equal(refused._tag, "Unavailable")
    yield* TestClock.adjust("999 millis")
    assert.lengthOf(threads, 1)
    yield* TestClock.adjust("1 millis")
    yield* becomes(instance, "available")
    assert.lengthOf(threads, 2)
    assert.equal(yield* responses(instance), 2)
  }),
)

it.effect("a thread that is idle for the timeout ends, and the next batch starts another one", () =>
  Effect.gen(function* () {
    const { instance, threads } = yield* supervised([spawn], {}, "1 minute")
    assert.equal(yield* responses(instance), 2)
    const ended = Effect.promise(() => new Promise((resolve) => threads[0]?.once("exit", resolve)))
    const ending = yield* Effect.forkChild(ended, { startImmediately: true })
    yield* TestClock.adjust("2 minutes")
    yield* Fiber.join(ending)
    assert.equal(instance.status(), "available")
    assert.lengthOf(threads, 1)
    assert.deepEqual(yield* Effect.all([responses(instance), responses(instance)], { concurrency: 2 }), [2, 2])
    assert.lengthOf(threads, 2)
  }),
)

const deaths = [
  ["an uncaught error", throws, "out of luck"],
  ["process.exit", diesWithBatch("process.exit(3)"), "exit code 3"],
  [
    "no memory left",
    (options) =>
      diesWithBatch("for (let all = []; ; ) all.push(new Array(1000).fill(all))")({
        ...options,
        resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2 },
      }),
    "Worker terminated due to reaching memory limit: JS heap out of memory",
  ],
] satisfies ReadonlyArray<readonly [string, Spawn, string]>

for (const [variant, dies, reason] of deaths) {
  it.effect(`a thread that dies by ${variant} fails the batches it has, says why, and is started again`, () =>
    Effect.gen(function* () {
      const { instance } = yield* supervised([dies, spawn])
      const run = Effect.flip(execute(instance))
      for (const error of yield* Effect.all([run, run], { concurrency: 2 })) {
        assert.equal(error._tag, "ExecutionFailed")
        assert.equal(error.message, `the worker thread of model 'slow' died while it had this batch: ${reason}`)
      }
      yield* turn
      yield* TestClock.adjust("100 millis")
      yield* becomes(instance, "available")
      assert.equal(yield* responses(instance), 2)
    }),
  )
}

it.effect("requests in flight when the scope closes are answered first", () =>
  Effect.gen(function* () {
    const closed = yield* Effect.scoped(
      Effect.gen(function* () {
        const { instance } = yield* supervised([spawn])
        const run = Effect.forkDetach(responses(instance), { startImmediately: true })
        return [instance, yield* run, yield* run] as const
      }),
    )
    const [instance, ...fibers] = closed
    // Closing has waited for them: they need no further turn of the event loop.
    assert.deepEqual(
      fibers.map((fiber) => fiber.pollUnsafe()),
      [Exit.succeed(2), Exit.succeed(2)],
    )
    assert.equal((yield* Effect.flip(execute(instance)))._tag, "Unavailable")
  }),
)

it.effect("one instance's death leaves the other's batches alone", () =>
  Effect.gen(function* () {
    const path = yield* file(slow(64, 2))
    let count = 0
    const one: Spawn = (options) => (count++ === 0 ? throws : spawn)(options)
    const [first, second] = yield* instances(Slow.definition, { file: path, instances: 2 }, one)
    const [died, responded] = yield* Effect.all([Effect.result(responses(first!)), Effect.result(responses(second!))], {
      concurrency: 2,
    })
    assert.isTrue(Result.isFailure(died))
    assert.isTrue(Result.isSuccess(responded))
    assert.equal(second?.status(), "available")
  }),
)

it.effect("pauses double, and after the last restart it has failed for good", () =>
  Effect.gen(function* () {
    const { instance, threads } = yield* supervised([impostor("")], { times: 3, delay: "1 second" })
    const statuses: Array<InstanceStatus> = []
    instance.onStatusChange = () => statuses.push(instance.status())
    const changes = (count: number) =>
      Effect.gen(function* () {
        while (statuses.length < count) yield* turn
      })
    for (const [index, seconds] of [1, 2, 4].entries()) {
      yield* changes(2 * index + 1)
      yield* TestClock.adjust(seconds * 1000 - 1)
      assert.lengthOf(threads, index + 1)
      yield* TestClock.adjust(1)
      // Its files are checked before it starts.
      while (threads.length < index + 2) yield* turn
    }
    yield* changes(8)
    assert.deepEqual(statuses.slice(-2), ["restarting", "failed"])
    assert.lengthOf(threads, 4)
    assert.equal((yield* Effect.flip(execute(instance)))._tag, "Unavailable")
  }),
)

it.effect("pauses double up to 30 seconds", () =>
  Effect.gen(function* () {
    const { instance, threads } = yield* supervised([impostor("")], { times: 100, delay: "20 seconds" })
    const statuses: Array<InstanceStatus> = []
    instance.onStatusChange = () => statuses.push(instance.status())
    for (const [index, seconds] of [20, 30, 30].entries()) {
      while (statuses.length < 2 * index + 1) yield* turn
      yield* TestClock.adjust(seconds * 1000 - 1)
      assert.lengthOf(threads, index + 1)
      yield* TestClock.adjust(1)
      while (threads.length < index + 2) yield* turn
    }
  }),
)

it.effect("a thread that does not load again counts as well", () =>
  Effect.gen(function* () {
    const broken: Spawn = (options) => new Worker("throw new Error('no memory left')", { ...options, eval: true })
    const { instance, threads } = yield* supervised([impostor(""), broken], { times: 2, delay: "1 second" })
    while (instance.status() !== "failed") {
      yield* turn
      yield* TestClock.adjust("1 second")
    }
    assert.lengthOf(threads, 3)
  }),
)

it.effect.runIf(hasFifos)("a file that is a FIFO by now counts as well, and starts no thread", () =>
  Effect.gen(function* () {
    const { instance, threads, path } = yield* supervised([impostor("")], { times: 2, delay: "1 second" })
    rmSync(path)
    makeFifo(path)
    while (instance.status() !== "failed") {
      yield* turn
      yield* TestClock.adjust("1 second")
    }
    assert.lengthOf(threads, 1)
  }),
)

it.effect("a batch that succeeds sets the count of restarts back", () =>
  Effect.gen(function* () {
    const { instance, threads } = yield* supervised([spawn], { times: 1, delay: "1 second" })
    for (let time = 1; time <= 3; time++) {
      assert.equal(yield* responses(instance), 2)
      yield* Effect.promise(() => threads.at(-1)!.terminate())
      yield* TestClock.adjust("1 second")
      yield* becomes(instance, "available")
      assert.lengthOf(threads, time + 1)
    }
  }),
)
