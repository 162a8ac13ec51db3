/** The promise of loading by code: what must not compile. `tsc` checks each `@ts-expect-error`. */
import { expect, it } from "@effect/vitest"
import { Data, Effect, Layer } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"
import type { Registry } from "./Registry.ts"

const fields = { inputs: { x: Tensor.scalar("INT32") }, outputs: { y: Tensor.scalar("INT32") } }

class One extends Model.Service<One>()("one", fields) {}
class Other extends Model.Service<Other>()("other", fields) {}
class NoWeights extends Data.TaggedError("NoWeights")<{ readonly message: string }> {}

const one = Model.each(One, ({ x }) => ({ y: x }))
const calling = Model.each(
  Other,
  Effect.map(One, ({ infer }) => infer),
)
const fails = Model.each(
  One,
  Effect.as(Effect.fail(new NoWeights({ message: "none" })), () => ({ y: 1 })),
)

/** Effects without needs, and with no other failures than these. */
const complete = <E extends { readonly _tag: string }>(effect: Effect.Effect<void, E>) => effect

export const changes = (registry: Registry["Service"]) => [
  complete(registry.load([One], one)),
  complete(registry.load([One, Other], Layer.provideMerge(calling, one))),
  complete(registry.replace([Other], Layer.provide(calling, one), { drain: "1 minute" })),
  complete(registry.unload("one", { version: 2 })),
  complete(registry.load([One], fails)) satisfies Effect.Effect<
    void,
    NoWeights | { readonly _tag: "AlreadyExists" | "InvalidRequest" | "Unavailable" }
  >,
  registry.load([Other], calling) satisfies Effect.Effect<void, { readonly _tag: string }, One>,

  // @ts-expect-error its layer provides another model
  registry.load([Other], one),
  // @ts-expect-error one of them is not provided
  registry.load([One, Other], one),
  // @ts-expect-error nothing is to be served of it
  registry.load([], one),
  // @ts-expect-error a load requires the services of the layer
  // @effect-diagnostics-next-line missingEffectContext:off
  complete(registry.load([Other], calling)),
  // @ts-expect-error a load fails with the error of the layer
  // @effect-diagnostics-next-line missingEffectError:off
  registry.load([One], fails) satisfies Effect.Effect<void, { readonly _tag: "AlreadyExists" }>,
  // @ts-expect-error no such option
  registry.replace([One], one, { drainTimeout: "1 minute" }),
  // @ts-expect-error the class and its layer are two
  registry.load(one),
]

it("compiles", () => expect(changes).toBeTypeOf("function"))
