/** Scripts of the repository under test whose answers differ from their configuration, or have several rows. */
import { io, type Stored, step } from "./StoredParts.ts"

const int32 = (dims: string) => `data_type: TYPE_INT32 dims: ${dims}`

const stored = (name: string, config: string, execute: string): Stored => ({
  name,
  file: `export default { execute: ${execute} }`,
  at: "1/model.js",
  config,
})

/** Y where bit 0 of X is set, Z where bit 1 is; always W, which is not declared. */
const some = stored(
  "some_outputs",
  `max_batch_size: 4 ${io("input", "X", int32("1"))}${io("output", "Y", int32("1"))}${io("output", "Z", int32("1"))}`,
  `(requests) => requests.map(({ inputs: { X } }) => ({
    W: X, ...(X.data[0] & 1 ? { Y: X } : {}), ...(X.data[0] & 2 ? { Z: X } : {})
  }))`,
)

/** 10 with A, and 1 more with B. */
const sum = (name: string, a: string) =>
  stored(
    name,
    `max_batch_size: 4 ${io("input", "A", `${int32("1")} ${a}`)}${io("input", "B", `${int32("1")} optional: true`)}${io("output", "S", int32("1"))}`,
    `(requests) => requests.map(({ inputs: { A, B } }) => {
    const Tensor = (A ?? B).constructor
    return { S: new Tensor("INT32", [1, 1], new Uint8Array(Int32Array.of((A ? 10 : 0) + (B ? 1 : 0)).buffer)) }
  })`,
  )

const ensemble = (name: string, inputsAndOutputs: string, ...steps: ReadonlyArray<string>): Stored => ({
  name,
  file: "",
  at: "1/.keep",
  config: `platform: "ensemble" max_batch_size: 4 ${io("input", "X", int32("1"))}${inputsAndOutputs}
    ensemble_scheduling { ${steps.join(" ")} }`,
})

/** Zeros in the shape that X tells. */
const shaped = (name: string, dims: string) =>
  stored(
    name,
    `${io("input", "X", int32("-1"))}${io("output", "Y", int32(dims))}`,
    `(requests) => requests.map(({ inputs: { X } }) => {
      if (X.shape.length !== 1) throw new Error("X has shape " + X.shape)
      const shape = [...X.data]
      return { Y: new X.constructor("INT32", shape, new Uint8Array(4 * shape.reduce((a, b) => a * b, 1))) }
    })`,
  )

/** X, then X again, with a parameter of the first response alone. */
const twice = (name: string, config: string) =>
  stored(
    name,
    `${config} ${io("input", "X", int32("1"))}${io("output", "Y", int32("1"))}
    model_transaction_policy { decoupled: true }`,
    `function* ({ inputs: { X }, setParameterUnsafe }) {
      if (X.data[0] < 0) throw new Error("no way down")
      setParameterUnsafe("first", true)
      yield { Y: X }
      yield { Y: X }
    }`,
  )

export const answers: ReadonlyArray<Stored> = [
  some,
  sum("sum_of_some", "optional: true"),
  sum("sum_with_a", ""),
  ensemble(
    "sum_of_outputs",
    io("output", "S", int32("1")),
    step("some_outputs", { X: "X" }, { Y: "y", Z: "z" }),
    step("sum_of_some", { A: "y", B: "z" }, { S: "S" }),
  ),
  ensemble(
    "sum_with_output",
    io("output", "S", int32("1")),
    step("some_outputs", { X: "X" }, { Y: "y", Z: "z" }),
    step("sum_with_a", { A: "y", B: "z" }, { S: "S" }),
  ),
  ensemble(
    "outputs_of_some",
    io("output", "P", int32("1")) + io("output", "Q", int32("1")),
    step("some_outputs", { X: "X" }, { Y: "P", Z: "Q" }),
  ),
  shaped("shaped_freely", "[-1, -1]"),
  shaped("shaped_in_part", "[-1, 3]"),
  twice("twice_rows", "max_batch_size: 4"),
  twice("twice_without_batch", ""),
]
