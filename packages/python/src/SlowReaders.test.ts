/** Models in Python whose readers take responses when the test says so. */
import { assert, describe, it } from "@effect/vitest"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { Request, Response } from "@nereid/core/internal/request/Request"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { InferenceError } from "@nereid/core/Errors"
import { Tensor } from "@nereid/core"
import { Context, Deferred, Effect, Exit, Layer, Queue, type Result, Scope } from "effect"
import { Command, logs, modelFile, python, Single, textTensor } from "./Python.fixture.ts"
import { Python } from "./index.ts"

const interpreter = python === undefined ? {} : { python }

const streams = (options: Omit<Python.LayerOptions, "file" | "warmUp" | "responseCache"> = {}) =>
  Python.layer(Command, { file: modelFile("triton_streams"), decoupled: true, ...interpreter, ...options })

const decoder = new TextDecoder()

/** Submits a request. `take` lets the reader take as many responses; `texts` has all of them. */
const read = ({ calls }: RunningModel, text: string, more: Partial<Request> = {}) =>
  Effect.gen(function* () {
    const offered = yield* Queue.unbounded<() => void>()
    const reply = yield* Deferred.make<Result.Result<Response, InferenceError>>()
    const texts: Array<string> = []
    const request: Request = {
      id: "",
      inputs: [textTensor(text)],
      rows: 1,
      parameters: {},
      deadline: undefined,
      ...more,
    }
    const emit = ({ outputs }: Response) =>
      Effect.callback<void>((resume) => {
        texts.push(decoder.decode(outputs[0]?.bytes.subarray(4)))
        Queue.offerUnsafe(offered, () => resume(Effect.void))
      })
    const cancel = calls.submit({ ...request, emit }, (outcome) => Deferred.doneUnsafe(reply, Exit.succeed(outcome)))
    const take = (count: number) =>
      Effect.map(Queue.take(offered), (resume) => resume()).pipe(Effect.repeat({ times: count - 1 }))
    return { take, texts, cancel, reply: Effect.flatten(Effect.map(Deferred.await(reply), Effect.fromResult)) }
  })

const first = (count: number) => Array.from({ length: count }, (_, index) => String(index))

/** With a model of 1 instance, and its log. */
const withModel = <E>(
  use: (model: RunningModel, until: Effect.Success<typeof logs>["until"]) => Effect.Effect<void, E>,
  options: Parameters<typeof streams>[0] = {},
) =>
  Effect.gen(function* () {
    const { layer, until } = yield* logs
    const run = Effect.flatMap(Command, ({ model }) => use(model, until))
    yield* run.pipe(Effect.provide(streams(options)), Effect.provide(layer))
  })

const forms = ["execute", "thread", "loop", "tasks"] as const

describe.skipIf(python === undefined)("a model.py with a slow reader", () => {
  it.live.each(forms)("sends 16 responses more than are taken, from %s", (form) =>
    withModel((model, until) =>
      Effect.gen(function* () {
        const { take, texts, reply } = yield* read(model, `${form} 100`)
        yield* until(/waits after 16$/)
        yield* take(8)
        yield* until(/waits after 24$/)
        yield* take(92)
        yield* until(/ended after 100$/)
        yield* reply
        assert.deepEqual(texts, first(100))
      }),
    ),
  )

  it.live.each(forms)("goes on when the caller leaves, from %s", (form) =>
    withModel((model, until) =>
      Effect.gen(function* () {
        const { cancel } = yield* read(model, `${form} 100`)
        yield* until(/waits after 16$/)
        cancel()
        yield* until(/ended after 100$/)
        const next = yield* read(model, "execute 1")
        yield* next.take(1)
        yield* next.reply
      }),
    ),
  )

  it.live.each(forms)("goes on at the deadline of the request, from %s", (form) =>
    withModel((model, until) =>
      Effect.gen(function* () {
        const { reply } = yield* read(model, `${form} 100`, { deadline: MonotonicTime.millis() + 2000 })
        yield* until(/waits after 16$/)
        assert.equal((yield* Effect.flip(reply))._tag, "DeadlineExceeded")
        yield* until(/ended after 100$/)
      }),
    ),
  )

  it.live.each(forms)("fails its requests when its process dies, from %s", (form) =>
    withModel((model, until) =>
      Effect.gen(function* () {
        const line = yield* until(/process \d+$/)
        const { reply } = yield* read(model, `${form} 100`)
        yield* until(/waits after 16$/)
        process.kill(Number(line.split(" ").at(-1)), "SIGKILL")
        assert.equal((yield* Effect.flip(reply)).message, "Stub process 'command_0_0' is not healthy.")
      }),
    ),
  )

  it.live.each(forms)("ends when the model is unloaded, from %s", (form) =>
    Effect.gen(function* () {
      const { layer, until } = yield* logs
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(streams(), scope).pipe(Effect.provide(layer))
      const line = yield* until(/process \d+$/)
      const { reply } = yield* read(Context.get(context, Command).model, `${form} 100`)
      yield* until(/waits after 16$/)
      yield* Scope.close(scope, Exit.void)
      assert.equal((yield* Effect.flip(reply))._tag, "Unavailable")
      // The process waits for its executions, and not for threads that the code has begun.
      if (form !== "thread") yield* until(/ended after 100$/)
      assert.throws(() => process.kill(Number(line.split(" ").at(-1)), 0), "ESRCH")
    }),
  )

  it.live("leaves other instances to other callers, and its wait does not count for executeTimeout", () =>
    withModel(
      (model, until) =>
        Effect.gen(function* () {
          const slow = yield* read(model, "execute 100")
          yield* until(/waits after 16$/)
          const quick = yield* read(model, "execute 3")
          yield* quick.take(3)
          yield* quick.reply
          // Its time begins later, so that of the other would be over before.
          const hanging = yield* read(model, "hang 0")
          assert.match((yield* Effect.flip(hanging.reply)).message, /'command_0_1' did not end within 1500 ms/)
          yield* slow.take(100)
          yield* slow.reply
          assert.deepEqual(slow.texts, first(100))
        }),
      { instances: 2, executeTimeout: 1500 },
    ),
  )
})

describe.skipIf(python === undefined)("a generator with a slow reader", () => {
  it.live.each(["count_aloud", "count_later"])(
    "waits 16 values ahead of it, and is closed when it leaves: %s",
    (name) =>
      Effect.gen(function* () {
        const { layer, until } = yield* logs
        yield* Effect.gen(function* () {
          const { model } = yield* Single
          const inputs = [Tensor.make("FP32", [1, 1], Float32Array.of(1000))]
          const { cancel, take } = yield* read(model, "", { inputs })
          yield* until(/yields 16$/)
          yield* take(8)
          yield* until(/yields 24$/)
          cancel()
          yield* until(/closed at 24$/)
        }).pipe(
          Effect.provide(Python.layer(Single, { file: modelFile("functions"), function: name, ...interpreter })),
          Effect.provide(layer),
        )
      }),
  )
})
