/** Property test: a random configuration loads a model or is refused with a reason, and never crashes the process. */
import { expect, it } from "@effect/vitest"
import { type JsonObject, ScalarType } from "@bufbuild/protobuf"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { repository } from "../../../../test/fixtures/repository.ts"
import * as ConfigArbitrary from "./ConfigArbitrary.fixture.ts"
import { open } from "../Repository.fixture.ts"

/** Values that are mostly valid. */
const scalars: ConfigArbitrary.Scalars = (type) => {
  switch (type) {
    case ScalarType.STRING:
      return fc.constantFrom("X", "Y", "m", "", "__proto__", "1", "../m", "model.js")
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return fc.constantFrom(0, 2.5, -1, "NaN", "Infinity")
    case ScalarType.UINT32:
    case ScalarType.UINT64:
      return fc.constantFrom(0, 1, 2, 4, 4, 100)
    default:
      return fc.constantFrom(0, 1, 1, 2, 4, 4, -1, 2 ** 31 - 1)
  }
}

/** Two or three of its fields, of a model that has inputs and outputs: of more, one is always wrong. */
const parts = fc
  .tuple(ConfigArbitrary.json(scalars), fc.array(fc.nat(), { minLength: 2, maxLength: 3 }))
  .map(([config, chosen]): JsonObject => {
    const fields = Object.entries(config).filter(([name]) => name !== "name")
    return { ...tensors, ...Object.fromEntries(chosen.flatMap((index) => fields.slice(index % 30, (index % 30) + 1))) }
  })

const tensors = {
  input: [{ name: "X", dataType: "TYPE_FP32", dims: [1] }],
  output: [{ name: "Y", dataType: "TYPE_FP32", dims: [1] }],
}

it.live("any configuration is loaded, or refused with a reason", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write(
      "m/1/model.js",
      "export default { execute: (requests) => requests.map(({ inputs }) => ({ Y: inputs.X })) }",
    )
    const { load, index } = yield* open(fixture, { control: "explicit" })
    const ends = { loaded: 0, refused: 0 }
    for (const config of fc.sample(parts, { numRuns: 200, seed: 1 })) {
      const text = JSON.stringify(config)
      const exit = yield* Effect.exit(load("m", { config: text }))
      if (Exit.isSuccess(exit)) ends.loaded += 1
      else {
        expect(exit.cause.reasons, text).toMatchObject([{ _tag: "Fail", error: { _tag: "InvalidRequest" } }])
        ends.refused += 1
      }
      expect(index()).toMatchObject([{ name: "m" }])
    }
    expect(Math.min(ends.loaded, ends.refused)).toBeGreaterThan(20)
  }),
)
