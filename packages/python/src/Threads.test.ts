/** Instances that are threads of one Python process: executions, cancellation, deadlines, death and stop. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect, Fiber, Layer } from "effect"
import { threadedPythons } from "../../../test/fixtures/threadedPythons.ts"
import { logs, modelFile, Pid, python, ready } from "./Python.fixture.ts"
import { Python } from "./index.ts"

class Said extends Model.Service<Said>()("said", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
}) {}

class Bytes extends Model.Service<Bytes>()("bytes", {
  inputs: { x: Tensor.UINT8(-1) },
  outputs: { y: Tensor.UINT8(-1) },
}) {}

const ask = (TEXT: string) =>
  Effect.gen(function* () {
    const { infer } = yield* Said
    const { ANSWER } = yield* infer({ TEXT })
    return ANSWER
  })

/** Answers of the three instances, which wait for each other. */
const meet = Effect.all([ask("meet"), ask("meet"), ask("meet")], { concurrency: "unbounded" }).pipe(
  Effect.map((answers) => answers.map((answer) => answer.split(" ")).toSorted()),
)

const isReady = Effect.flatMap(Said, ({ model }) => ready(model))

describe.each(threadedPythons)("three instances in threads, %s,", (_, executable) => {
  const options = { file: modelFile("threads"), python: executable, instances: 3, threads: true } as const

  it.live("execute at the same time in one process, and end in their threads", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.scoped(
        Effect.gen(function* () {
          const answers = yield* meet
          assert.deepEqual(
            answers.map(([name]) => name),
            ["said_0_0", "said_0_1", "said_0_2"],
          )
          assert.strictEqual(new Set(answers.map(([, pid]) => pid)).size, 1)
        }).pipe(Effect.provide(Python.layer(Said, options))),
      ).pipe(Effect.provide(layer))
      yield* until(/said_0_\d ends in its thread/)
      yield* until(/said_0_\d ends in its thread/)
      yield* until(/said_0_\d ends in its thread/)
    }),
  )

  it.live("receive each the cancellation of their requests", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.gen(function* () {
        const waiting = yield* Effect.forEach([0, 1, 2], () => Effect.forkChild(ask("wait")))
        for (const _ of waiting) yield* until(/said_0_\d waits/)
        for (const fiber of waiting) {
          yield* Fiber.interrupt(fiber)
          yield* until(/said_0_\d was cancelled/)
        }
        assert.strictEqual((yield* meet).length, 3)
      }).pipe(Effect.provide(Python.layer(Said, options)), Effect.provide(layer))
    }),
  )

  it.live("die together, fail by their names, and start again together", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.gen(function* () {
        const [[, before] = []] = yield* meet
        const others = yield* Effect.forEach([0, 1], () => Effect.forkChild(Effect.flip(ask("wait"))))
        for (const _ of others) yield* until(/said_0_\d waits/)
        const errors = [yield* Effect.flip(ask("die")), ...(yield* Fiber.joinAll(others))]
        assert.deepEqual(
          errors.map(({ message }) => message).toSorted(),
          [0, 1, 2].map((index) => `Stub process 'said_0_${index}' is not healthy.`),
        )
        yield* until(/The process of instance said_0_0 to said_0_2 died: exit code 3/)
        yield* isReady
        const [[, after] = []] = yield* meet
        assert.notStrictEqual(after, before)
      }).pipe(Effect.provide(Python.layer(Said, { ...options, restart: { delay: 1 } })), Effect.provide(layer))
    }),
  )

  it.live("share the end of an execution that takes too long, with its stack in the log", () =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      yield* Effect.gen(function* () {
        const waiting = yield* Effect.forEach([0, 1], () => Effect.forkChild(Effect.flip(ask("wait"))))
        const [message, other] = (yield* Fiber.joinAll(waiting)).map((error) => error.message)
        assert.match(
          message ?? "",
          /^execute of instance 'said_0_\d' did not end within 300 ms; its process was ended$/,
        )
        assert.strictEqual(other, message)
        yield* until(/did not end within 300 ms:\n[^]*in wait/)
        yield* isReady
        assert.strictEqual((yield* meet).length, 3)
      }).pipe(
        Effect.provide(Python.layer(Said, { ...options, executeTimeout: 300, restart: { delay: 1 } })),
        Effect.provide(layer),
      )
    }),
  )

  it.live.each([["model.py"], ["function"]])("keep the bytes of large tensors of a %s, with many callers", ([kind]) =>
    Effect.gen(function* () {
      const { infer } = yield* Bytes
      const sizes = [10, 32_768, 614_400, 2_097_152, 3_000_000]
      const calls = Array.from({ length: 60 }, (_, index) => {
        const [length, value] = [(sizes[index % sizes.length] ?? 0) + index, index + 1]
        const x = Tensor.make("UINT8", [length], new Uint8Array(length).fill(value))
        return Effect.map(infer({ x }), ({ y }) =>
          assert.deepEqual([y.data.length, [...new Set(y.data)]], [length, [value]]),
        )
      })
      yield* Effect.all(calls, { concurrency: 16 })
    }).pipe(
      Effect.provide(
        kind === "model.py"
          ? Python.layer(Bytes, { ...options, file: modelFile("identity") })
          : Python.layer(Bytes, { ...options, file: modelFile("functions"), function: "same" }),
      ),
    ),
  )
})

describe.skipIf(python === undefined)("instances in threads", () => {
  it.live("are refused on a Python with a global lock, whose path the error has", () =>
    Effect.gen(function* () {
      const options = { file: modelFile("functions"), function: "process_id", threads: true, ...(python && { python }) }
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Python.layer(Pid, options))))
      assert.instanceOf(error, Python.PythonLoadError)
      assert.match(
        error.reason,
        /^instances in threads need a free-threaded Python, but .*python.* is Python 3\.\S+ with a/,
      )
      assert.strictEqual(error.python, python)
    }),
  )
})
