/** A model whose requests share no batches: `batching: { shared: false }`. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result } from "effect"
import * as ConfigurationMessage from "../configuration/ConfigurationMessage.ts"
import * as Model from "../Model.ts"
import { noParameters, type Request } from "../request/Request.ts"
import { infer } from "../running/CallableModel.ts"
import * as Tensor from "../Tensor.ts"

class Alone extends Model.Service<Alone>()("alone", {
  inputs: { x: Tensor.INT32(1) },
  outputs: { y: Tensor.INT32(1) },
  maxBatchSize: 4,
  batching: { shared: false, maxQueueDelay: "1 hour" },
}) {}

const request = (...values: ReadonlyArray<number>): Request => ({
  id: "",
  inputs: [Tensor.make("INT32", [values.length, 1], Int32Array.from(values))],
  rows: values.length,
  parameters: noParameters,
  deadline: undefined,
})

it.effect("each request is a separate batch, does not wait, and goes to a free instance", () =>
  Effect.gen(function* () {
    const entered = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
    const release = yield* Deferred.make<void>()
    const seen: Array<number> = []
    const layer = Model.requests(
      Alone,
      Effect.fnUntraced(function* (requests) {
        seen.push(requests.length)
        const [first] = requests
        const value = first?.inputs.x.data[0]
        if (value === 0 || value === 1) yield* Deferred.succeed(entered[value], undefined)
        yield* Deferred.await(release)
        return requests.map(({ inputs: { x } }) => Result.succeed({ y: x }))
      }),
      { instances: 2 },
    )
    const { model } = yield* Effect.provideContext(Alone, yield* Layer.build(layer))
    const call = (...values: ReadonlyArray<number>) => Effect.forkChild(infer(model.calls, request(...values)))
    const pending = [yield* call(0), yield* call(1), yield* call(2, 3, 4, 5), yield* call(6)]
    // Both instances have one, and two wait.
    yield* Effect.all(entered.map((one) => Deferred.await(one)))
    expect([seen, model.life.pending()]).toEqual([[1, 1], 2])
    yield* Deferred.succeed(release, undefined)
    const responses = yield* Effect.forEach(pending, Fiber.join)
    expect(responses.map(({ outputs: [y] }) => [...(y?.data ?? [])])).toEqual([[0], [1], [2, 3, 4, 5], [6]])
    expect(model.description.statistics).toMatchObject({ executionCount: 4, inferenceCount: 7 })
    expect(ConfigurationMessage.make(model)).toMatchObject({ maxBatchSize: 4, schedulingChoice: { case: undefined } })
  }),
)
