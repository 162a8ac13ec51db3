/** Queue options of calls in code, with and without declared parameters. */
import { expect, it } from "@effect/vitest"
import { Duration, Effect, Layer, Result, Schema } from "effect"
import * as Model from "../Model.ts"
import * as QueuedCall from "./QueuedCall.ts"
import { RequestContext } from "../handler/RequestContext.ts"
import * as Tensor from "../Tensor.ts"

it("a call without parameters has no shared parameters", () => {
  const given = { by: 2n }
  expect(Result.getOrThrow(QueuedCall.parameters(given, {}))).toBe(given)
})

it.each<readonly [QueuedCall.QueuedCallOptions, object]>([
  [{ priority: 1 }, { priority: 1n }],
  [{ priority: 2n ** 64n - 1n }, { priority: 2n ** 64n - 1n }],
  [{ queueTimeout: "10 millis" }, { timeout: 10_000n }],
  [{ queueTimeout: Duration.nanos(1n) }, { timeout: 1n }],
  [{ priority: 2, queueTimeout: Duration.infinity }, { priority: 2n }],
])("%o", (options, expected) => {
  expect(Result.getOrThrow(QueuedCall.parameters({ by: 2n }, options))).toEqual({ by: 2n, ...expected })
})

it.each<readonly [QueuedCall.QueuedCallOptions, string, string]>([
  [{ priority: 0 }, "priority", "must be an integer of at least 1, but 0 was given"],
  [{ priority: 1.5 }, "priority", "must be an integer of at least 1, but 1.5 was given"],
  [{ priority: -1n }, "priority", "must be an integer of at least 1, but -1 was given"],
  [{ queueTimeout: 0 }, "queueTimeout", "must be longer than 0, but 0 ms was given"],
])("%o is refused", (options, field, message) => {
  expect(QueuedCall.parameters({}, options)).toEqual(Result.fail({ field, message }))
})

const fields = { inputs: { X: Tensor.scalar("INT32") }, outputs: { SEEN: Tensor.utf8() } }

class Any extends Model.Service<Any>()("any", fields) {}

class Declaring extends Model.Service<Declaring>()("declaring", { ...fields, parameters: { by: Schema.Number } }) {}

const seen = Effect.map(RequestContext, ({ parameters }) => ({ SEEN: Object.keys(parameters).toSorted().join() }))

it.effect("a caller may set it without a declaration of the model", () =>
  Effect.gen(function* () {
    const [any, declaring] = [yield* Any, yield* Declaring]
    expect(yield* any.infer({ X: 1 }, { priority: 1, parameters: { by: 2 } })).toEqual({ SEEN: "by,priority" })
    expect((yield* declaring.infer({ X: 1 }, { priority: 1, parameters: { by: 2 } })).SEEN).toContain("by")
    const error = yield* Effect.flip(declaring.infer({ X: 1 }, { id: "7", priority: 0, parameters: { by: 2 } }))
    expect(error).toMatchObject({
      _tag: "InvalidRequest",
      message:
        "[request id: 7] parameter 'priority' of model 'declaring': must be an integer of at least 1, but 0 was given",
    })
  }).pipe(
    Effect.provide(
      Layer.merge(
        Model.each(Any, () => seen),
        Model.each(Declaring, () => seen),
      ),
    ),
  ),
)
