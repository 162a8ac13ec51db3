/** Models from plain functions of numpy arrays, in real Python processes. */
import { dirname } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Tensor } from "@nereid/core"
import { Effect, Fiber, Layer, Stream } from "effect"
import { expect } from "vitest"
import { logs, modelFile, Numbers, Pid, python, ready, Rows, Shout, Single, Unbatched } from "./Python.fixture.ts"
import { Python } from "./index.ts"

const file = modelFile("functions")

/** Options of a function of functions.py. */
const of = (name: string) => ({ file, function: name, ...(python !== undefined && { python }) })

const ofModule = (module: string) => ({
  module,
  function: "double",
  env: { PYTHONPATH: dirname(file) },
  ...(python !== undefined && { python }),
})

const pair = (...values: [number, number]) => ({ x: Tensor.make("FP32", [2], Float32Array.from(values)) })

describe.skipIf(python === undefined)("a function", () => {
  it.live("receives arrays by the names of inputs, and returns the output", () =>
    Effect.gen(function* () {
      const { infer } = yield* Numbers
      const { y } = yield* infer(pair(1, 2))
      assert.deepEqual([...y.data], [2, 4])
    }).pipe(Effect.provide(Python.layer(Numbers, of("double")))),
  )

  it.live("computes the rows of several requests at once: 1 + 2 rows are one execution of 3", () =>
    Effect.gen(function* () {
      const { inferBatch } = yield* Rows
      const rows = (count: number) => inferBatch({ x: Tensor.make("FP32", [count, 1], new Float32Array(count)) })
      const [one, two] = yield* Effect.all([rows(1), rows(2)], { concurrency: "unbounded" })
      assert.deepEqual([[...one.rows.data], [...two.rows.data]], [[3n], [3n, 3n]])
      assert.deepEqual([...two.executions.data], [1n, 1n])
    }).pipe(Effect.provide(Python.layer(Rows, of("batch_rows")))),
  )

  it.live("of text receives and returns str", () =>
    Effect.gen(function* () {
      const { infer } = yield* Shout
      assert.deepEqual(yield* infer({ text: "grüße 🎈" }), { loud: "GRÜSSE 🎈!" })
    }).pipe(Effect.provide(Python.layer(Shout, of("shout")))),
  )

  it.live("that raises fails its request, with the exception and its place", () =>
    Effect.gen(function* () {
      const { infer } = yield* Single
      const error = yield* Effect.flip(infer({ x: 3 }))
      assert.equal(error._tag, "ExecutionFailed")
      assert.match(
        error.message,
        /^Failed to process the request\(s\) for model 'single_0_0', message: ValueError: no 3\n\nAt:\n {2}.*functions\.py\(\d+\): fail\n/,
      )
    }).pipe(Effect.provide(Python.layer(Single, of("fail")))),
  )

  it.live("that returns wrong outputs fails its request, and says which", () =>
    Effect.gen(function* () {
      const call = (name: string) =>
        Effect.flip(Effect.flatMap(Numbers, ({ infer }) => infer(pair(1, 2)))).pipe(
          Effect.provide(Python.layer(Numbers, of(name))),
        )
      const wrong = yield* call("wrong_dtype")
      assert.match(wrong.message, /: output 'y' must be FP32 \[-1, 2\]; the function returned FP64 \[1, 2\]$/)
    }),
  )

  it.live("with other parameters than the inputs does not load", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Python.layer(Numbers, of("wrong_name")))))
      assert.instanceOf(error, Python.PythonLoadError)
      assert.match(error.message, /^cannot load model 'numbers' from '.*functions\.py' with .*python.*'?x'?/s)
    }),
  )

  it.live("may be in a module that Python finds", () =>
    Effect.gen(function* () {
      const { infer } = yield* Numbers
      const { y } = yield* infer(pair(1, 2))
      assert.deepEqual([...y.data], [2, 4])
    }).pipe(Effect.provide(Python.layer(Numbers, ofModule("functions")))),
  )

  it.live("in a module that Python does not find does not load: the error names both", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Python.layer(Numbers, ofModule("absent.models")))))
      assert.strictEqual(error._tag, "PythonLoadError")
      assert.match(error.message, /^cannot load model 'numbers' from 'absent\.models' with .*python.*'absent'/s)
    }),
  )

  it.live("that does not exist does not load", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Python.layer(Numbers, of("absent")))))
      assert.match(error.message, /absent/)
    }),
  )

  it.live("that is a generator answers by a stream", () =>
    Effect.gen(function* () {
      const { stream } = yield* Single
      const all = yield* Stream.runCollect(stream({ x: 3 }))
      assert.deepEqual([...all], [{ y: 0 }, { y: 1 }, { y: 2 }])
    }).pipe(Effect.provide(Python.layer(Single, of("count")))),
  )

  it.live("that is async executes as many batches at once as `concurrency` allows", () =>
    Effect.gen(function* () {
      const { infer } = yield* Unbatched
      const call = infer({ x: Tensor.make("FP32", [1, 1], Float32Array.of(5)) })
      const all = yield* Effect.all([call, call, call, call, call], { concurrency: "unbounded" })
      assert.equal(all.length, 5)
    }).pipe(Effect.provide(Python.layer(Unbatched, { ...of("meet"), concurrency: 5 }))),
  )

  it.live("that prints much does not disturb its request: long lines are cut", () =>
    Effect.gen(function* () {
      const log = yield* logs
      const call = Effect.gen(function* () {
        const { infer } = yield* Numbers
        assert.deepEqual([...(yield* infer(pair(1, 2))).y.data], [1, 2])
        yield* log.until(/stdout: line 9999$/)
      })
      yield* call.pipe(Effect.provide(Python.layer(Numbers, of("loud"))), Effect.provide(log.layer))
    }),
  )

  it.live("sees no variable of the server's environment that it does not need", () =>
    Effect.gen(function* () {
      const { infer } = yield* Shout
      const read = (name: string) => Effect.map(infer({ text: name }), ({ loud }) => loud)
      process.env["NEREID_TEST_SECRET"] = "secret"
      process.env["NEREID_TEST_PASSED"] = "passed"
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          delete process.env["NEREID_TEST_SECRET"]
          delete process.env["NEREID_TEST_PASSED"]
        }),
      )
      const layer = Python.layer(Shout, {
        ...of("environment"),
        env: { OWN: "own" },
        inheritEnv: ["NEREID_TEST_P*"],
      })
      const { infer: ask } = yield* Effect.provideContext(Shout, yield* Layer.build(layer))
      const answers = yield* Effect.forEach(["NEREID_TEST_SECRET", "NEREID_TEST_PASSED", "OWN"], (text) =>
        ask({ text }),
      )
      assert.deepEqual(
        answers.map(({ loud }) => loud),
        ["unset", "passed", "own"],
      )
      assert.equal(yield* read("x"), "X!")
    }).pipe(Effect.provide(Python.layer(Shout, of("shout")))),
  )
})

describe.skipIf(python === undefined)("a process", () => {
  it.live("that dies fails only its requests, and is started again; the model is not ready meanwhile", () =>
    Effect.gen(function* () {
      const { infer, model } = yield* Single
      const error = yield* Effect.flip(infer({ x: -1 }))
      assert.deepEqual([error._tag, error.message], ["ExecutionFailed", "Stub process 'single_0_0' is not healthy."])
      assert.isFalse(model.life.isReady())
      yield* ready(model)
      assert.deepEqual(yield* infer({ x: 2 }), { y: 2 })
    }).pipe(Effect.provide(Python.layer(Single, { ...of("die"), restart: { delay: 50 } }))),
  )

  it.live("with an execution that takes too long is ended; the log has the stacks", () =>
    Effect.gen(function* () {
      const log = yield* logs
      const call = Effect.gen(function* () {
        const { infer, model } = yield* Single
        const error = yield* Effect.flip(infer({ x: -1 }))
        assert.equal(error.message, "execute of instance 'single_0_0' did not end within 200 ms; its process was ended")
        yield* log.until(/^Error: execute of instance 'single_0_0' did not end within 200 ms:[^]*in hang/)
        yield* ready(model)
        assert.deepEqual(yield* infer({ x: 2 }), { y: 2 })
      })
      const layer = Python.layer(Single, { ...of("hang"), executeTimeout: 200, restart: { delay: 1 } })
      yield* call.pipe(Effect.provide(layer), Effect.provide(log.layer))
    }),
  )

  it.live("is one for each instance, and ends with the model", () =>
    Effect.gen(function* () {
      const pids = yield* Effect.gen(function* () {
        const { infer } = yield* Pid
        const call = infer({ x: Tensor.make("FP32", [1], Float32Array.of(0)) })
        const all = yield* Effect.all([call, call], { concurrency: "unbounded" })
        return new Set(all.map(({ pid }) => pid))
      }).pipe(Effect.provide(Python.layer(Pid, { ...of("process_id"), instances: 2 })))
      assert.equal(pids.size, 2)
      for (const pid of pids) expect(() => process.kill(Number(pid), 0)).toThrow("ESRCH")
    }),
  )

  it.live("that a caller leaves while it computes is not ended: its next request succeeds", () =>
    Effect.gen(function* () {
      const { infer } = yield* Single
      const first = yield* Effect.forkChild(infer({ x: 1 }), { startImmediately: true })
      yield* Fiber.interrupt(first)
      assert.deepEqual(yield* infer({ x: 2 }), { y: 2 })
    }).pipe(Effect.provide(Python.layer(Single, of("hang")))),
  )
})

describe("an interpreter", () => {
  it.live("that does not exist is named by the error", () =>
    Effect.gen(function* () {
      const layer = Python.layer(Numbers, { file, function: "double", python: "/absent/python" })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.instanceOf(error, Python.PythonLoadError)
      assert.match(error.message, /Failed to get the canonical path for \/absent\/python/)
    }),
  )
})

it.each<readonly [string, object]>([
  ["concurrency must be an integer of at least 1, but 0 was given", { concurrency: 0 }],
  ["maxMemoryBytes must be an integer of at least 67108864, but 5 was given", { maxMemoryBytes: 5 }],
  ["executeTimeout must be a time above 0 and below 24 days, but 0 was given", { executeTimeout: 0 }],
  ["either file or module must be given", { file: undefined }],
  ["either file or module must be given", { module: "functions" }],
  ['module must be a dotted name, but "a-b" was given', { file: undefined, module: "a-b" }],
  ["decoupled is for a model.py; a function is decoupled if it is a generator", { decoupled: true }],
])("an option out of range is refused: %s", (message, options) => {
  expect(() => Python.layer(Numbers, { file, function: "double", ...options })).toThrow(message)
})
