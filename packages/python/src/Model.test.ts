/** Models from files with Triton's class, in real Python processes. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { infer } from "@nereid/core/internal/running/CallableModel"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { Request } from "@nereid/core/internal/request/Request"
import { Effect, Fiber, Layer, Queue, Result, Stream } from "effect"
import { Command, logs, modelFile, python, ready, textTensor } from "./Python.fixture.ts"
import { Python } from "./index.ts"

type Options = Omit<Python.LayerOptions, "file" | "warmUp" | "responseCache">

const interpreter = python === undefined ? {} : { python }

const command = (options: Options = {}) =>
  Python.layer(Command, { file: modelFile("model"), ...interpreter, ...options })

/** The error of a layer that does not build. */
const loadError = (options: Options) =>
  Effect.flip(Effect.scoped(Layer.build(command(options)))).pipe(
    Effect.tap((error) => Effect.sync(() => assert.instanceOf(error, Python.PythonLoadError))),
  )

const request = (text: string, more: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [textTensor(text)],
  rows: 1,
  parameters: {},
  deadline: undefined,
  ...more,
})

const text = new TextDecoder()

describe.skipIf(python === undefined)("a model.py", () => {
  it.live("has the seven arguments of initialize", () =>
    Effect.gen(function* () {
      const { infer } = yield* Command
      const { ANSWER } = yield* infer({ TEXT: "args" })
      assert.equal(
        ANSWER,
        [
          "model_instance_device_id=0",
          "model_instance_kind=CPU",
          "model_instance_name=command_0_0",
          "model_name=command",
          `model_repository=${modelFile("").slice(0, -4)}`,
          "model_version=1",
        ].join(","),
      )
    }).pipe(Effect.provide(command())),
  )

  it.live("receives the requests of a batch, and answers each with outputs or a separate error", () =>
    Effect.gen(function* () {
      const { infer, model } = yield* Command
      const texts = ["size", "error INVALID_ARG wrong", "echo a", "error NOT_FOUND nothing"]
      const all = yield* Effect.forEach(texts, (TEXT) => Effect.result(infer({ TEXT })), { concurrency: "unbounded" })
      assert.deepEqual(
        all.map((one) => (Result.isSuccess(one) ? one.success.ANSWER : `${one.failure._tag}: ${one.failure.message}`)),
        ["4", "InvalidRequest: wrong", "a", "ModelNotFound: nothing"],
      )
      assert.equal(model.description.statistics.executionCount, 1)
    }).pipe(Effect.provide(command())),
  )

  it.live.each([
    ["UNKNOWN", "Unknown"],
    ["INTERNAL", "ExecutionFailed"],
    ["NOT_FOUND", "ModelNotFound"],
    ["INVALID_ARG", "InvalidRequest"],
    ["UNAVAILABLE", "Unavailable"],
    ["UNSUPPORTED", "Unsupported"],
    ["ALREADY_EXISTS", "AlreadyExists"],
    ["CANCELLED", "Cancelled"],
  ])("fails with code %s as %s", ([code, tag]) =>
    Effect.gen(function* () {
      const { infer } = yield* Command
      const error = yield* Effect.flip(infer({ TEXT: `error ${code} text` }))
      assert.deepEqual([error._tag, error.message], [tag, "text"])
    }).pipe(Effect.provide(command())),
  )

  it.live("with an execute that raises fails all requests of the batch", () =>
    Effect.gen(function* () {
      const { infer } = yield* Command
      const texts = ["raise bad", "echo a"]
      const all = yield* Effect.forEach(texts, (TEXT) => Effect.flip(infer({ TEXT })), { concurrency: "unbounded" })
      for (const { _tag, message } of all) {
        assert.equal(_tag, "ExecutionFailed")
        assert.match(
          message,
          /^Failed to process the request\(s\) for model 'command_0_0', message: KeyError: 'bad'\n\nAt:\n {2}\S+model\.py\(\d+\): respond\n/,
        )
      }
    }).pipe(Effect.provide(command())),
  )

  it.live("reads the properties of a request, and sets parameters of its response", () =>
    Effect.gen(function* () {
      const { model } = yield* Command
      const { outputs, parameters } = yield* infer(
        model.calls,
        request("request", {
          id: "a",
          parameters: {
            sequence_id: 2n ** 63n,
            sequence_start: true,
            timeout: 5_000_000n,
            whole: 3n,
            half: 0.5,
            two: 2,
            word: "ü",
            no: false,
          },
          requestedOutputs: ["ANSWER"],
          deadline: MonotonicTime.millis() + 60_000,
        }),
      )
      const [seen] = outputs
      assert.deepEqual(
        text.decode(seen?.bytes.subarray(4)).replaceAll(/\s+/g, ""),
        [
          '["a",9223372036854775808,1,5000000,{"whole":3,"half":0.5,"two":2.0,"word":"\\u00fc","no":false},["ANSWER"]]',
        ].join(""),
      )
      assert.deepEqual(parameters, { seen: 7n, name: "n", is: true })
    }).pipe(Effect.provide(command())),
  )

  it.live("answers by a sender after execute has returned; the instance takes other requests meanwhile", () =>
    Effect.gen(function* () {
      const { infer } = yield* Command
      assert.deepEqual(yield* infer({ TEXT: "late reply" }), { ANSWER: "reply" })
      const all = yield* Effect.forEach(["late a", "echo b"], (TEXT) => infer({ TEXT }), { concurrency: "unbounded" })
      assert.deepEqual(all, [{ ANSWER: "a" }, { ANSWER: "b" }])
    }).pipe(Effect.provide(command())),
  )

  it.live("that neither returns nor sends a response fails the request", () =>
    Effect.gen(function* () {
      const { infer } = yield* Command
      const error = yield* Effect.flip(infer({ TEXT: "never" }))
      assert.equal(error._tag, "ExecutionFailed")
    }).pipe(Effect.provide(command())),
  )

  it.live("logs with the level and the place of the call", () =>
    Effect.gen(function* () {
      const log = yield* logs
      yield* Effect.gen(function* () {
        const { infer } = yield* Command
        yield* infer({ TEXT: "log careful" })
        yield* log.until(/^Warn: model\.py:\d+: careful$/)
      }).pipe(Effect.provide(command()), Effect.provide(log.layer))
      yield* log.until(/^Info: command stdout: finalized command_0_0$/)
    }),
  )

  it.live("that kills its process fails its batch at once; the next request succeeds in another process", () =>
    Effect.gen(function* () {
      const { infer, model } = yield* Command
      const error = yield* Effect.flip(infer({ TEXT: "exit" }))
      assert.equal(error.message, "Stub process 'command_0_0' is not healthy.")
      yield* ready(model)
      assert.deepEqual(yield* infer({ TEXT: "echo again" }), { ANSWER: "again" })
    }).pipe(Effect.provide(command({ restart: { delay: 1 } }))),
  )

  it.live("with an initialize that raises does not load: the error is its text", () =>
    Effect.gen(function* () {
      const { message } = yield* loadError({ parameters: { fail: "no weights" } })
      assert.match(message, /^cannot load model 'command' from '\S+model\.py' with \S+: .*ValueError: no weights/)
    }),
  )

  it.live("that imports a missing package does not load: the error names it, and the command that installs it", () =>
    Effect.gen(function* () {
      const error = yield* loadError({ parameters: { import: "sklearn" } })
      assert.equal(error._tag === "PythonLoadError" ? error.missing : undefined, "sklearn")
      assert.match(error.message, /No module named 'sklearn'[^]*-m pip install scikit-learn/)
    }),
  )

  it.live("that is killed in initialize does not load", () =>
    Effect.gen(function* () {
      const { message } = yield* loadError({ parameters: { kill: "1" } })
      assert.include(message, "Stub process 'command_0_0' is not healthy. It ended with signal SIGKILL")
    }),
  )

  it.live("may be given up while it loads: its process ends", () =>
    Effect.gen(function* () {
      const log = yield* logs
      const loading = yield* Effect.forkChild(
        Effect.scoped(Layer.build(command({ parameters: { hang: "1" } }))).pipe(Effect.provide(log.layer)),
      )
      const line = yield* log.until(/^Info: command stdout: loading in \d+$/)
      yield* Fiber.interrupt(loading)
      assert.throws(() => process.kill(Number(line.split(" ").at(-1)), 0), "ESRCH")
    }),
  )

  it.live("with an initialize that does not end in time does not load; the log has its stacks", () =>
    Effect.gen(function* () {
      const log = yield* logs
      const { message } = yield* loadError({ parameters: { hang: "1" }, initializeTimeout: 3000 }).pipe(
        Effect.provide(log.layer),
      )
      assert.include(message, "initialize did not end within 3000 ms")
      yield* log.until(/^Error: initialize did not end within 3000 ms:[^]*in initialize/)
    }),
  )
})

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { ANSWER: Tensor.utf8() },
  maxBatchSize: 4,
}) {}

class Other extends Model.Service<Other>()("other", {
  inputs: { TEXT: Tensor.INT32(1) },
  outputs: { ANSWER: Tensor.utf8() },
}) {}

const decoupled = Python.layer(Texts, { file: modelFile("decoupled"), ...interpreter })

describe.skipIf(python === undefined)("a decoupled model.py", () => {
  const answers = (TEXT: string) =>
    Effect.flatMap(Texts, ({ stream }) => Effect.map(Stream.runCollect(stream({ TEXT })), (all) => [...all]))

  it.live("sends any number of responses, none too", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* answers("now 2"), [{ ANSWER: "0 of 1" }, { ANSWER: "1 of 1" }])
      assert.deepEqual(yield* answers("now 0"), [])
      assert.equal((yield* answers("now 3000")).length, 3000)
    }).pipe(Effect.provide(decoupled)),
  )

  it.live("receives several requests in one batch", () =>
    Effect.gen(function* () {
      const all = yield* Effect.all([answers("now 1"), answers("now 1")], { concurrency: "unbounded" })
      assert.deepEqual(all, [[{ ANSWER: "0 of 2" }], [{ ANSWER: "1 of 2" }].map(() => ({ ANSWER: "0 of 2" }))])
    }).pipe(Effect.provide(decoupled)),
  )

  it.live("answers a request after execute has returned: a later request releases an earlier one", () =>
    Effect.gen(function* () {
      const late = yield* Effect.forkChild(answers("late at last"), { startImmediately: true })
      yield* Effect.yieldNow
      assert.deepEqual(yield* answers("release"), [{ ANSWER: "released" }])
      assert.deepEqual(yield* Fiber.join(late), [{ ANSWER: "at last" }])
    }).pipe(Effect.provide(decoupled)),
  )

  it.live("ends a stream with an error", () =>
    Effect.gen(function* () {
      const { stream } = yield* Texts
      const seen: Array<string> = []
      const error = yield* Effect.flip(
        Stream.runForEach(stream({ TEXT: "error" }), ({ ANSWER }) => Effect.sync(() => void seen.push(ANSWER))),
      )
      assert.deepEqual([seen, error._tag, error.message], [["first"], "ModelNotFound", "not the second"])
    }).pipe(Effect.provide(decoupled)),
  )

  it.live("sees that the caller of a request has left", () =>
    Effect.gen(function* () {
      const log = yield* logs
      yield* Effect.gen(function* () {
        const { stream } = yield* Texts
        const begun = yield* Queue.unbounded<string>()
        const caller = yield* Effect.forkChild(
          Stream.runForEach(stream({ TEXT: "cancelled" }), ({ ANSWER }) => Queue.offer(begun, ANSWER)),
        )
        assert.equal(yield* Queue.take(begun), "begun")
        yield* Fiber.interrupt(caller)
        yield* log.until(/stdout: saw the cancellation$/)
      }).pipe(Effect.provide(decoupled), Effect.provide(log.layer))
    }),
  )

  it.live("completes its configuration in a process that prints nothing", () =>
    Effect.gen(function* () {
      const log = yield* logs
      yield* Effect.scoped(Layer.build(decoupled)).pipe(Effect.provide(log.layer))
      assert.deepEqual(yield* log.left, [])
    }),
  )

  it.live("with other inputs than declared does not load: the error says how", () =>
    Effect.gen(function* () {
      const layer = Python.layer(Other, { file: modelFile("decoupled"), ...interpreter })
      const { message } = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      const expected = "auto_complete_config differs from the declaration: its input 'TEXT' is BYTES[1], but INT32[1]"
      assert.include(message, expected)
    }),
  )
})
