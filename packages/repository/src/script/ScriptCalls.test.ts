/** Scripts of a repository that call other models by name for their requests. */
import { expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { Model, Tensor } from "@nereid/core"
import type { Request, Response } from "@nereid/core/internal/request/Request"
import { infer, stream } from "@nereid/core/internal/running/CallableModel"
import { repository } from "../../../../test/fixtures/repository.ts"
import { open } from "../Repository.fixture.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

const config = (more: string) => `
  max_batch_size: 4 ${more}
  input { name: "X" data_type: TYPE_FP32 dims: 1 }
  output { name: "Y" data_type: TYPE_FP32 dims: 1 }`

const decoupled = "model_transaction_policy { decoupled: true }"

/** Answers with what another model answers, whose name is the parameter `to` of the request. */
const script = `export default {
  initialize: ({ models }) => models,
  execute: (requests, models) =>
    Promise.all(requests.map(({ inputs, parameters, run }) =>
      run(models.inferBatch(parameters["to"], inputs)).catch((error) => error))),
}`

/** The same, with as many responses. */
const following = `export default {
  initialize: ({ models }) => models,
  execute: async function* ({ inputs: { X }, run }, models) {
    const sample = { X: new X.constructor("FP32", [1], X.bytes) }
    for await (const { Y } of run(models.stream("counting", sample))) yield { Y: new Y.constructor("FP32", [1, 1], Y.bytes) }
  },
}`

const counting = `export default {
  execute: function* ({ inputs: { X } }) {
    for (let i = 1; i <= X.data[0]; i++) yield { Y: new X.constructor("FP32", [1, 1], new Uint8Array(Float32Array.of(i).buffer)) }
  },
}`

class Slow extends Model.Service<Slow>()("slow", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { Y: Tensor.FP32(1) },
  maxBatchSize: 4,
}) {}

const request = (to: string, value: number, more: Partial<Request> = {}): Request => ({
  id: "",
  inputs: [Tensor.make("FP32", [1, 1], Float32Array.of(value))],
  rows: 1,
  deadline: undefined,
  parameters: { to },
  ...more,
})

const first = ({ outputs: [output] }: Response) => output?.data[0]

/** The scripts, beside `plus` in ONNX Runtime and `slow` in code, which never answers. */
const opened = Effect.gen(function* () {
  const entered = yield* Deferred.make<{ readonly id: string; readonly deadline: number | undefined }>()
  const left = yield* Deferred.make<void>()
  const slow = Model.each(Slow, (_, { id, deadline, signal }) => {
    signal.addEventListener("abort", () => Deferred.doneUnsafe(left, Effect.void))
    return Effect.andThen(Deferred.succeed(entered, { id, deadline }), Effect.never)
  })
  const inCode = Context.get(yield* Layer.build(slow), Slow).model
  const fixture = yield* repository
  const four = "dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 60000000 }"
  fixture.adding("plus", 1, 10, config(four))
  fixture.adding("idle", 1, 10)
  fixture.write("asking/1/model.js", script)
  fixture.write("asking/config.pbtxt", config("dynamic_batching {} instance_group { count: 4 }"))
  fixture.write("following/1/model.js", following)
  fixture.write("following/config.pbtxt", config(decoupled))
  fixture.write("counting/1/model.js", counting)
  fixture.write("counting/config.pbtxt", config(decoupled))
  const load = ["plus", "asking", "following", "counting"]
  const { registry } = yield* open(fixture, { control: "explicit", load }, [inCode])
  const model = yield* Effect.fromResult(registry.get("asking", ""))
  return { registry, model, entered, left }
})

it.live("a script calls a model of its repository, and its calls share batches", () =>
  Effect.gen(function* () {
    const { model, registry } = yield* opened
    const responses = yield* Effect.forEach([1, 2, 3, 4], (value) => infer(model.calls, request("plus", value)), {
      concurrency: "unbounded",
    })
    expect(responses.map(first)).toEqual([11, 12, 13, 14])
    const plus = yield* Effect.fromResult(registry.get("plus", ""))
    expect(plus.description.statistics).toMatchObject({ inferenceCount: 4, executionCount: 1 })
  }),
)

it.live("its questions have the id and the deadline of the request, and end with it", () =>
  Effect.gen(function* () {
    const { model, entered, left } = yield* opened
    const begun = Date.now()
    const deadline = MonotonicTime.millis() + 60_000
    const waiting = yield* Effect.forkChild(infer(model.calls, request("slow", 1, { id: "outer", deadline })))
    const seen = yield* Deferred.await(entered)
    expect(seen).toEqual({ id: "outer", deadline: expect.any(Number) })
    expect(seen.deadline).toBeGreaterThanOrEqual(begun + 59_990)
    expect(seen.deadline).toBeLessThanOrEqual(Date.now() + 60_000)
    yield* Fiber.interrupt(waiting)
    yield* Deferred.await(left)
  }),
)

it.live("an error of the called model keeps its tag", () =>
  Effect.gen(function* () {
    const { model } = yield* opened
    const refused = (to: string) =>
      Effect.map(Effect.flip(infer(model.calls, request(to, 1))), ({ _tag, message }) => [_tag, message])
    expect(yield* refused("nobody")).toEqual(["ModelNotFound", "Request for unknown model: 'nobody' is not found"])
    expect(yield* refused("idle")).toEqual(["ModelNotFound", "Request for unknown model: 'idle' is not found"])
    expect(yield* refused("asking")).toEqual(["ExecutionFailed", expect.stringContaining("'asking'")])
  }),
)

it.live("a script of any number of responses may have those of another one", () =>
  Effect.gen(function* () {
    const { registry } = yield* opened
    const model = yield* Effect.fromResult(registry.get("following", ""))
    const responses = yield* Stream.runCollect(stream(model.calls, request("", 3)))
    expect(responses.map(first)).toEqual([1, 2, 3])
  }),
)
