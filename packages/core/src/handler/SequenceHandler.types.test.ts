/** Mistakes in the states of sequences, which must not compile. `tsc` checks each `@ts-expect-error`. */
import { expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Model from "../Model.ts"
import * as Tensor from "../Tensor.ts"

const shared = { inputs: { X: Tensor.scalar("INT32") }, outputs: { Y: Tensor.scalar("INT32") } }

class Sums extends Model.Service<Sums>()("sums", {
  ...shared,
  sequence: { state: { SUM: Tensor.scalar("INT32"), SEEN: Tensor.FP32(2) } },
}) {}

class Names extends Model.Service<Names>()("names", {
  ...shared,
  sequence: { state: Schema.Array(Schema.String), initial: () => [] },
}) {}

class Plain extends Model.Service<Plain>()("plain", shared) {}

const floats = Tensor.make("FP32", [2], new Float32Array(2))
const doubles = Tensor.make("FP64", [2], new Float64Array(2))
const matrix = Tensor.make("FP32", [1, 2], new Float32Array(2))
const longer = Tensor.make("FP32", [3], new Float32Array(3))
const outputs = { Y: 1 }

export const handlers = () => [
  Model.sequence(Sums, ({ X }, { state: { SUM, SEEN } }) => ({ outputs, state: { SUM: SUM + X, SEEN } })),
  Model.sequence(Sums, () => Effect.succeed({ outputs, state: { SUM: 1, SEEN: floats } })),
  Model.sequence(Names, (_, { state }) => ({ outputs, state: [...state, "name"] })),

  // @ts-expect-error wrong datatype
  Model.sequence(Sums, () => ({ outputs, state: { SUM: 1, SEEN: doubles } })),
  // @ts-expect-error wrong rank
  Model.sequence(Sums, () => ({ outputs, state: { SUM: 1, SEEN: matrix } })),
  // @ts-expect-error wrong extent
  Model.sequence(Sums, () => ({ outputs, state: { SUM: 1, SEEN: longer } })),
  // @ts-expect-error a scalar of INT32 is a number
  Model.sequence(Sums, () => ({ outputs, state: { SUM: 1n, SEEN: floats } })),
  // @ts-expect-error the same from an effect
  Model.sequence(Sums, () => Effect.succeed({ outputs, state: { SUM: 1, SEEN: doubles } })),
  // @ts-expect-error the same from a promise
  Model.sequence(Sums, () => Promise.resolve({ outputs, state: { SUM: 1, SEEN: doubles } })),
  // @ts-expect-error a state is missing
  Model.sequence(Sums, () => ({ outputs, state: { SUM: 1 } })),
  // @ts-expect-error no state
  Model.sequence(Sums, () => ({ outputs })),
  // @ts-expect-error the state is a list of strings
  Model.sequence(Names, () => ({ outputs, state: [1] })),
  // @ts-expect-error the state is a list
  Model.sequence(Names, () => ({ outputs, state: "name" })),
  // @ts-expect-error the model has a state
  Model.perSequence(Sums, () => () => outputs),
  // @ts-expect-error the model has sequences
  Model.each(Sums, () => outputs),
  // @ts-expect-error the model has no sequences
  Model.sequence(Plain, () => ({ outputs, state: undefined })),
]

export const declarations = () => [
  Model.Service()("tensors", {
    ...shared,
    sequence: { state: { S: Tensor.scalar("INT32") }, initial: () => ({ S: 1 }) },
  }),

  // @ts-expect-error wrong datatype of the initial state
  Model.Service()("wrong", { ...shared, sequence: { state: { S: Tensor.FP32(2) }, initial: () => ({ S: doubles }) } }),
  // @ts-expect-error wrong rank of the initial state
  Model.Service()("wrong", { ...shared, sequence: { state: { S: Tensor.FP32(2) }, initial: () => ({ S: matrix }) } }),
  // @ts-expect-error wrong name of the initial state
  Model.Service()("wrong", { ...shared, sequence: { state: { S: Tensor.FP32(2) }, initial: () => ({ T: floats }) } }),
  // @ts-expect-error the initial state does not fit the Schema
  Model.Service()("wrong", { ...shared, sequence: { state: Schema.Int, initial: () => "none" } }),
  // @ts-expect-error a Schema has no default for its initial state
  Model.Service()("wrong", { ...shared, sequence: { state: Schema.Int } }),
  // @ts-expect-error an initial state without a state
  Model.Service()("wrong", { ...shared, sequence: { initial: () => 1 } }),
]

it("loads", () => {
  expect([handlers, declarations]).toHaveLength(2)
})
