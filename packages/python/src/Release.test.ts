/** Memory of outputs: used again once every response in it is released, and never before. */
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import type { Response } from "@nereid/core/internal/request/Request"
import { Effect, Result } from "effect"
import { modelFile, python } from "./Python.fixture.ts"
import { Python } from "./index.ts"

const length = 100_000

class Rows extends Model.Service<Rows>()("rows", {
  inputs: { x: Tensor.UINT8(length) },
  outputs: { y: Tensor.UINT8(length) },
  maxBatchSize: 2,
  batching: { maxQueueDelay: "10 seconds", preferredBatchSizes: [2] },
}) {}

/** A response with every byte of this value. */
const respond = (value: number) =>
  Effect.flatMap(Rows, ({ model }) =>
    Effect.callback<Response>((resume) => {
      const inputs = [Tensor.make("UINT8", [1, length], new Uint8Array(length).fill(value))]
      model.calls.submit({ id: "", inputs, rows: 1, parameters: {}, deadline: undefined }, (outcome) =>
        resume(Effect.succeed(Result.getOrThrow(outcome))),
      )
    }),
  )

/** Two requests, which are one batch. */
const respondBoth = (first: number, second: number) =>
  Effect.all([respond(first), respond(second)], { concurrency: "unbounded" })

const bytesOf = ({ outputs }: Response) => outputs[0]?.bytes ?? new Uint8Array()

describe.skipIf(python === undefined).each(["model.py", "function"])("the memory of outputs of a %s", (kind) => {
  const layer = Python.layer(
    Rows,
    kind === "function"
      ? { file: modelFile("functions"), function: "same", ...(python !== undefined && { python }) }
      : { file: modelFile("identity"), ...(python !== undefined && { python }) },
  )

  it.live("is used again once both responses of the batch are released", () =>
    Effect.gen(function* () {
      const [one, two] = yield* respondBoth(1, 2)
      const { buffer } = bytesOf(one)
      assert.strictEqual(bytesOf(two).buffer, buffer)
      one.release?.()
      // A second release of the same response counts for nothing.
      one.release?.()
      const [three] = yield* respondBoth(3, 4)
      assert.notStrictEqual(bytesOf(three).buffer, buffer)
      assert.isTrue(bytesOf(two).every((byte) => byte === 2))
      two.release?.()
      const [five, six] = yield* respondBoth(5, 6)
      assert.strictEqual(bytesOf(five).buffer, buffer)
      assert.isTrue(bytesOf(five).every((byte) => byte === 5) && bytesOf(six).every((byte) => byte === 6))
    }).pipe(Effect.provide(layer)),
  )
})
