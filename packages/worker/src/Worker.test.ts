/** Models whose handlers run in worker threads: the same behaviour as on the main thread, and threads that die. */
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { assert, describe, expect, it } from "@effect/vitest"
import { type Model, Tensor } from "@nereid/core"
import { Unrecoverable } from "@nereid/core/Errors"
import type { Request } from "@nereid/core/internal/request/Request"
import { infer } from "@nereid/core/internal/running/CallableModel"
import { Context, Duration, Effect, Exit, Fiber, Layer, Logger, Metric, Queue, Result, Scope, Stream } from "effect"
import type * as contract from "./Command.fixture.ts"
import { Command, Count, OtherRows, Rows, Scale } from "./Command.fixture.ts"
import type * as commandHandler from "./CommandHandler.fixture.ts"
import type * as declaredHandler from "./DeclaredHandler.fixture.ts"
import { Declaring, Refused } from "./Declaring.fixture.ts"
import type * as countHandler from "./CountHandler.fixture.ts"
import type * as rowsHandler from "./RowsHandler.fixture.ts"
import type * as scaleHandler from "./ScaleHandler.fixture.ts"
import { Worker } from "./index.ts"
import type * as unready from "./Unready.fixture.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

const module = (name: string) => new URL(`./${name}.fixture.ts`, import.meta.url)

const command = (options: Worker.LayerOptions<(typeof Command)["definition"]["inputs"]> = {}) =>
  Worker.layer<typeof commandHandler>()(Command, module("CommandHandler"), options)

/** Queues log messages as they are logged. */
const logs = Effect.gen(function* () {
  const lines = yield* Queue.unbounded<string>()
  const layer = Logger.layer([
    Logger.make(({ message, logLevel }) => void Queue.offerUnsafe(lines, `${logLevel}: ${String(message)}`)),
  ])
  const until = (pattern: RegExp) =>
    Queue.take(lines).pipe(Effect.repeat({ until: (line) => pattern.test(line) }), Effect.timeout("20 seconds"))
  return { layer, until, all: Queue.takeAll(lines) }
})

/** The model of the layer; `ask` it with texts. */
const running = Effect.fnUntraced(function* (options: Parameters<typeof command>[0] = {}) {
  const log = yield* logs
  const build = Layer.build(command({ restart: { delay: 1 }, ...options })).pipe(
    Effect.provide(yield* Layer.build(log.layer)),
  )
  const { infer, model } = yield* Effect.provideContext(Command, yield* build)
  const call = (TEXT: string) => Effect.map(infer({ TEXT }), ({ ANSWER }) => ANSWER)
  return { infer: call, model, log }
})

const ready = ({ life }: RunningModel) =>
  Effect.sleep("5 millis").pipe(Effect.repeat({ until: life.isReady }), Effect.timeout("20 seconds"))

describe("a handler in a thread", () => {
  it.live(
    "of the requests of a batch has them together, each with its id, rows and parameters, and answers each alone",
    () =>
      Effect.gen(function* () {
        const layer = Worker.layer<typeof scaleHandler>()(Scale, module("ScaleHandler"))
        const { model, withParameters } = yield* Effect.provideContext(Scale, yield* Layer.build(layer))
        const call = (id: string, by: number, ...x: ReadonlyArray<number>) =>
          Effect.result(
            withParameters.inferBatch(
              { x: Tensor.make("FP32", [x.length, 1], Float32Array.from(x)) },
              { id, parameters: { by } },
            ),
          )
        const responses = yield* Effect.all([call("a", 2, 1), call("b", 0, 1), call("c", -1, 3, 4)], {
          concurrency: "unbounded",
        })
        assert.deepEqual(
          responses.map((response) =>
            Result.isSuccess(response)
              ? [[...response.success.outputs.y.data], response.success.parameters.together]
              : [response.failure._tag, response.failure.message],
          ),
          [
            [[2], 3],
            ["InvalidRequest", "b: by nothing"],
            [[-3, -4], 3],
          ],
        )
        assert.equal(model.description.statistics.executionCount, 1)
      }),
  )

  it.live("fails with errors that its model declares, and sets its parameters of responses", () =>
    Effect.gen(function* () {
      const layer = Worker.layer<typeof declaredHandler>()(Declaring, module("DeclaredHandler"))
      const { withParameters } = yield* Effect.provideContext(Declaring, yield* Layer.build(layer))
      assert.deepEqual(yield* withParameters.infer({ x: 9 }), { outputs: { y: 9 }, parameters: { root: 3 } })
      const error = yield* Effect.flip(withParameters.infer({ x: -1 }))
      assert.instanceOf(error, Refused)
      assert.deepEqual([error.least, error.given], [0, -1])
    }),
  )

  it.live("is not on the main thread, is built once, and has its context", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running()
      assert.equal(yield* call("thread"), "false true 1")
      assert.equal(yield* call("thread"), "false true 2")
      const request: Request = {
        id: "a",
        inputs: [Tensor.make("BYTES", [1, 1], [new TextEncoder().encode("context")])],
        rows: 1,
        parameters: { a: 2n },
        deadline: MonotonicTime.millis() + 60_000,
        requestedOutputs: ["ANSWER"],
      }
      const { outputs, parameters } = yield* infer(model.calls, request)
      assert.equal(new TextDecoder().decode(outputs[0]?.bytes.subarray(4)), "a 1 2 ANSWER true")
      assert.deepEqual(parameters, { seen: 7n })
    }),
  )

  it.live("requests of one batch are executed together, and fail alone, by their tags", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running()
      const texts = ["echo a", "fail InvalidRequest", "fail QueueFull", "fail Strange", "die a bug", "echo b"]
      const responses = yield* Effect.forEach(texts, (text) => Effect.result(call(text)), { concurrency: "unbounded" })
      assert.deepEqual(
        responses.map((response) =>
          Result.isSuccess(response) ? response.success : `${response.failure._tag}: ${response.failure.message}`,
        ),
        [
          "a",
          "InvalidRequest: it is InvalidRequest",
          "QueueFull: it is QueueFull",
          "ExecutionFailed: Failed to process the request(s) for model 'command_0', message: Strange",
          "ExecutionFailed: Failed to process the request(s) for model 'command_0', message: a bug",
          "b",
        ],
      )
      assert.equal(model.description.statistics.executionCount, 2)
      assert.equal(model.description.platform, "nereid")
      expect(yield* Effect.flip(call("later 1500"))).toMatchObject({ _tag: "QueueFull", retryAfter: 1500 })
      // Node forbids it to threads: a failure like any other.
      assert.equal((yield* Effect.flip(call("abort")))._tag, "ExecutionFailed")
      assert.equal(yield* call("echo c"), "c")
    }),
  )

  it.live("an unrecoverable error of a handler is that of its model", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running()
      assert.equal(yield* call("echo a"), "a")
      const failure = yield* Effect.flip(call("lose the device"))
      assert.instanceOf(failure, Unrecoverable)
      assert.equal(failure.message, "the device")
      assert.equal(model.life.isReady(), false)
      assert.equal((yield* Effect.flip(call("echo b")))._tag, "ModelNotReady")
    }),
  )

  it.live("of whole batches: tensors and optional ones arrive, and answers are not those of the handler's memory", () =>
    Effect.gen(function* () {
      const layer = Worker.layer<typeof rowsHandler>()(Rows, module("RowsHandler"))
      const rows = yield* Effect.provideContext(Rows, yield* Layer.build(layer))
      const x = (value: number) => Tensor.make("FP32", [3], Float32Array.of(value, value, value))
      const values = [1, 2, 3, 4, 5, 6]
      const responses = yield* Effect.forEach(values, (value) => rows.infer({ x: x(value) }), {
        concurrency: "unbounded",
      })
      assert.deepEqual(
        responses.map(({ y }) => y.data[0]),
        values,
      )
      assert.deepEqual(responses.map(({ rows }) => rows.data[0]).toSorted(), [2, 2, 4, 4, 4, 4])
      const text = Tensor.make("BYTES", [1], [Uint8Array.of(0, 255, 0)])
      const { y } = yield* rows.infer({ x: x(7), text })
      assert.deepEqual([...y.data], [7, 7, 7])
    }),
  )

  it.live("that is decoupled answers by a stream; a slow reader slows it, one that leaves stops it", () =>
    Effect.gen(function* () {
      const layer = Worker.layer<typeof countHandler>()(Count, module("CountHandler"))
      const count = yield* Effect.provideContext(Count, yield* Layer.build(layer))
      assert.isTrue(count.model.calls.decoupled)
      const numbers = (yield* Stream.runCollect(count.stream({ TO: 40 }))).map(({ N }) => N)
      assert.deepEqual(
        numbers,
        Array.from({ length: 40 }, (_, index) => index + 1),
      )
      assert.deepEqual(yield* Stream.runCollect(count.stream({ TO: 0 })), [])
      const failure = yield* Effect.flip(Stream.runDrain(count.stream({ TO: -1 })))
      assert.match(failure.message, /below zero/)
      const first = yield* Stream.runCollect(Stream.take(count.stream({ TO: 1_000_000 }), 2))
      assert.lengthOf(first, 2)
      // It is ahead of its reader by what may wait for it, and by no more.
      const [next] = yield* Stream.runCollect(count.stream({ TO: 1 }))
      assert.isBelow(next?.PULLED ?? Infinity, 40 + 2 + 40)
    }),
  )

  it.live("receives its instance context; requests go to any free instance", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running({ instances: [{ count: 1 }, { kind: "GPU", gpus: [3] }] })
      const waiting = yield* Effect.forkChild(call("wait"), { startImmediately: true })
      const names = yield* Effect.forEach([1, 2], () => call("instance"))
      assert.deepEqual(names, ["command_1_0", "command_1_0"])
      yield* Fiber.interrupt(waiting)
      assert.deepEqual(model.life.instanceGroups(), [
        { name: "command_0", kind: "CPU", count: 1, gpus: [] },
        { name: "command_1", kind: "GPU", count: 1, gpus: [3] },
      ])
    }),
  )

  it.live("has the options of Node and the environment that it is given", () =>
    Effect.gen(function* () {
      const { infer: call } = yield* running({ execArgv: ["--no-warnings"], env: { OF_THE_THREAD: "b" } })
      assert.equal(yield* call("runtime"), `--no-warnings b ${process.env["HOME"]}`)
      assert.isUndefined(process.env["OF_THE_THREAD"])
    }),
  )

  it.live("receives the data for its module, which must be cloneable", () =>
    Effect.gen(function* () {
      const { infer: call } = yield* running({ data: { labels: new Map([["a", 1n]]), bytes: Uint8Array.of(7) } })
      assert.equal(yield* call("data"), "{ labels: Map(1) { 'a' => 1n }, bytes: Uint8Array(1) [ 7 ] }")
      const withoutData = yield* running()
      assert.equal(yield* withoutData.infer("data"), "undefined")
      const { message } = yield* Effect.flip(Layer.build(command({ data: () => {} })))
      assert.match(
        message,
        /^cannot load model 'command' from .*: the worker thread failed to start: .*could not be cloned/,
      )
    }),
  )

  it.live("logs through the main thread's logger; initializes once, and finalizes when the model unloads", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { infer: call, log } = yield* Scope.provide(running(), scope)
      yield* call("log careful")
      yield* Scope.close(scope, Exit.void)
      assert.deepEqual(yield* log.all, [
        "Info: command_0 on undefined initializes",
        "Warn: careful",
        "Info: command_0 finalizes",
      ])
    }),
  )

  it.live("has metrics that are kept on the main thread, for as long as it is there", () =>
    Effect.gen(function* () {
      const registry: Metric.MetricRegistry = new Map()
      const scope = yield* Scope.make()
      const measured = () =>
        Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry)).map(({ id, attributes, state }) => [
          id,
          attributes,
          state,
        ])
      const { infer: call } = yield* running().pipe(
        Effect.provideService(Metric.MetricRegistry, registry),
        Scope.provide(scope),
      )
      for (const text of ["echo a", "echo b", "thread"]) yield* call(text)
      const labels = { model: "command", version: "1" }
      assert.deepEqual(measured(), [
        ["test_commands", { command: "echo", ...labels }, { count: 2, incremental: true }],
        ["test_commands", { command: "thread", ...labels }, { count: 1, incremental: true }],
      ])
      yield* Scope.close(scope, Exit.void)
      assert.deepEqual(measured(), [])
    }),
  )

  it.live("a warm-up and a response cache are as elsewhere", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running({
        instances: 2,
        warmUp: { inputs: [{ TEXT: "thread" }] },
        responseCache: true,
      })
      assert.equal(yield* call("thread"), "false true 2")
      assert.equal(yield* call("thread"), "false true 2")
      assert.equal(model.description.statistics.cacheHit.count, 1)
    }),
  )
})

describe("a thread that dies", () => {
  it.live("fails its batch with the reason, and is restarted after any cause", () =>
    Effect.gen(function* () {
      const { infer: call, model, log } = yield* running({ maxHeapBytes: 64 * 2 ** 20 })
      for (const [variant, reason] of [
        ["exit 3", "exit code 3"],
        ["throw out of luck", "out of luck"],
        ["heap", "Worker terminated due to reaching memory limit: JS heap out of memory"],
      ] as const) {
        const failure = yield* Effect.flip(call(variant))
        assert.equal(failure._tag, "ExecutionFailed")
        assert.equal(failure.message, `the worker thread of model 'command' died while it had this batch: ${reason}`)
        assert.isFalse(model.life.isReady())
        yield* log.until(/has restarted/)
        yield* ready(model)
        assert.equal(yield* call("thread"), "false true 1")
      }
    }),
  )

  it.live("takes neither the other instances nor the queue with it", () =>
    Effect.gen(function* () {
      const { infer: call, model } = yield* running({ instances: 2 })
      const dying = yield* Effect.forkChild(Effect.flip(call("exit 1")), { startImmediately: true })
      // Waits, so that the next request is in a separate batch.
      yield* Effect.yieldNow.pipe(Effect.repeat({ until: () => model.life.pending() === 0 }))
      const texts = ["echo a", "echo b", "echo c", "echo d", "echo e"]
      const responses = yield* Effect.forEach(texts, call, { concurrency: "unbounded" })
      assert.deepEqual(responses, ["a", "b", "c", "d", "e"])
      assert.equal((yield* Fiber.join(dying))._tag, "ExecutionFailed")
      assert.isTrue(model.life.isReady())
    }),
  )

  it.live("too often in a row is not restarted: the model reports it, and refuses requests", () =>
    Effect.gen(function* () {
      const { infer: call, model, log } = yield* running({ restart: { times: 1, delay: 1 } })
      yield* Effect.flip(call("exit 1"))
      yield* log.until(/has restarted/)
      yield* ready(model)
      yield* Effect.flip(call("exit 1"))
      yield* log.until(/has failed permanently after 1 restarts in a row/)
      assert.equal((yield* Effect.flip(call("echo a")))._tag, "ModelNotReady")
      assert.isFalse(model.life.isReady())
    }),
  )
})

describe("a cancelled call", () => {
  it.live("is interrupted in its thread, which goes on", () =>
    Effect.gen(function* () {
      const { infer: call, log } = yield* running()
      assert.equal(yield* call("thread"), "false true 1")
      const fiber = yield* Effect.forkChild(call("wait"), { startImmediately: true })
      yield* log.until(/begins/)
      yield* Fiber.interrupt(fiber)
      yield* log.until(/interrupted/)
      assert.equal(yield* call("thread"), "false true 2")
    }),
  )

  it.live("and does not end is ended with its thread, which does not count as a death", () =>
    Effect.gen(function* () {
      const {
        infer: call,
        model,
        log,
      } = yield* running({ cancelTimeout: "20 millis", restart: { times: 1, delay: 1 } })
      for (let turn = 0; turn < 2; turn++) {
        const fiber = yield* Effect.forkChild(call("spin"), { startImmediately: true })
        yield* log.until(/begins/)
        yield* Fiber.interrupt(fiber)
        yield* log.until(/a cancelled batch did not end/)
        yield* log.until(/has restarted/)
        yield* ready(model)
      }
      assert.equal(yield* call("thread"), "false true 1")
    }),
  )
})

it.live("an unload ends a thread that ignores a cancellation, long before its cancel timeout", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const { infer: call, log } = yield* Scope.provide(running(), scope)
    const fiber = yield* Effect.forkChild(call("spin"), { startImmediately: true })
    yield* log.until(/begins/)
    yield* Fiber.interrupt(fiber)
    const [duration] = yield* Effect.timed(Scope.close(scope, Exit.void))
    yield* log.until(/Model 'command' stops without a batch that did not end after an interruption/)
    expect(Duration.toSeconds(duration)).toBeLessThan(8)
  }),
)

describe("a failed load", () => {
  const failure = <Self>(layer: Layer.Layer<Self, Worker.WorkerLoadError>) =>
    Effect.map(Effect.flip(Effect.scoped(Layer.build(layer))), ({ message }) => message)

  it.live("gives the reason: no module, one that fails, no layer, another model, another signature, no weights", () =>
    Effect.gen(function* () {
      const cannot = (name: string) => `cannot load model 'command' from '${module(name).href}': `
      assert.include(
        yield* failure(Worker.layer()(Command, module("Missing"))),
        `${cannot("Missing")}Cannot find module`,
      )
      const broken = new URL("data:text/javascript,throw new Error('nothing to load')")
      assert.match(
        yield* failure(Worker.layer()(Command, broken)),
        /^cannot load model .* from 'data:.*: nothing to load$/,
      )
      assert.equal(
        yield* failure(Worker.layer()(Command, module("Command"))),
        `${cannot("Command")}its default export is not a model layer`,
      )
      assert.equal(
        yield* failure(Worker.layer()(Command, module("RowsHandler"))),
        `${cannot("RowsHandler")}its layer does not provide model 'command' version 1`,
      )
      assert.equal(
        yield* failure(Worker.layer()(OtherRows, module("RowsHandler"))),
        `cannot load model 'rows' from '${module("RowsHandler").href}': its outputs differ from the declaration: ` +
          `expected y: FP32["n"], rows: INT64[1], got y: FP32["n"], rows: INT32[1]`,
      )
      assert.equal(
        yield* failure(Worker.layer<typeof unready>()(Command, module("Unready"))),
        `${cannot("Unready")}no weights`,
      )
      assert.include(
        yield* failure(Worker.layer()(Command, module("CommandHandler"), { execArgv: ["--max-old-space-size=64"] })),
        `${cannot("CommandHandler")}the worker thread failed to start: Initiated Worker with invalid execArgv flags: --max`,
      )
      assert.include(
        yield* failure(Worker.layer()(Command, module("CommandHandler"), { maxHeapBytes: 16 * 2 ** 20 })),
        `${cannot("CommandHandler")}its worker thread died: Worker terminated due to reaching memory limit`,
      )
    }),
  )

  it.live("times out; other loading threads are ended", () =>
    Effect.gen(function* () {
      const options = { instances: [{ kind: "GPU" }], startTimeout: "2 seconds" } as const
      const message = yield* failure(Worker.layer<typeof unready>()(Command, module("Unready"), options))
      assert.match(message, /the worker thread was not ready after 2000 ms$/)
    }),
  )

  it.live("a cache of a decoupled model is refused when it is known to be one", () =>
    Effect.gen(function* () {
      const message = yield* failure(Worker.layer()(Count, module("CountHandler"), { responseCache: true }))
      assert.match(message, /responseCache requires a model that is not decoupled$/)
    }),
  )
})

it("the module's layer must be that of the model, and closed; options are checked at declaration", () => {
  const url = module("CommandHandler")
  const fits: Layer.Layer<Command, Worker.WorkerLoadError> = Worker.layer<typeof commandHandler>()(Command, url)
  // @ts-expect-error the module is that of another model
  const other = Worker.layer<typeof commandHandler>()(Rows, url)
  // @ts-expect-error the module exports no layer
  const none = Worker.layer<typeof contract>()(Command, url)
  // @ts-expect-error its layer needs a service that no thread has
  const open = Worker.layer<{ readonly default: Layer.Layer<Command, never, Rows> }>()(Command, url)
  const warm: Layer.Layer<Command, Worker.WorkerLoadError | Model.WarmUpFailed> = Worker.layer<typeof commandHandler>()(
    Command,
    url,
    { warmUp: "zeros" },
  )
  // @ts-expect-error an unknown option
  const misspelt = Worker.layer<typeof commandHandler>()(Command, url, { instance: 2 })
  assert.isTrue([fits, other, none, open, warm, misspelt].every(Layer.isLayer))
  assert.throws(() => command({ instances: 0 }), 'Model "command": instances must be an integer of at least 1')
  assert.throws(
    () => command({ maxHeapBytes: 1_000_000 }),
    "maxHeapBytes must be an integer of at least 16777216, but 1000000 was given",
  )
  assert.throws(() => command({ cancelTimeout: 0 }), "cancelTimeout must be a time above 0 and below 24 days")
  assert.throws(() => command({ restart: { times: -1 } }), "restart.times must be an integer of at least 0")
})
