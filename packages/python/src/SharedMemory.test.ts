/** Large tensors, whose bytes the server and a process pass on in memory that both have. */
import { existsSync, readdirSync, readlinkSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import { modelFile, python } from "./Python.fixture.ts"
import { Python } from "./index.ts"

class Bytes extends Model.Service<Bytes>()("bytes", {
  inputs: { x: Tensor.UINT8(-1) },
  outputs: { y: Tensor.UINT8(-1) },
}) {}

const functionNamed = (name: string) =>
  Python.layer(Bytes, { file: modelFile("functions"), function: name, ...(python !== undefined && { python }) })

const modelPy = Python.layer(Bytes, { file: modelFile("identity"), ...(python !== undefined && { python }) })

/** Bytes of a call, from the first to the last. */
const call = (length: number, value: number) =>
  Effect.gen(function* () {
    const { infer } = yield* Bytes
    const { y } = yield* infer({ x: Tensor.make("UINT8", [length], new Uint8Array(length).fill(value)) })
    return { length: y.data.length, values: [...new Set(y.data)] }
  })

/** Descriptors of this process for such memory. */
const descriptors = (): number => {
  const links = readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return []
    }
  })
  return links.filter((link) => link.startsWith("/memfd:nereid")).length
}

describe.skipIf(python === undefined).each([
  ["model.py", modelPy],
  ["function", functionNamed("same")],
] as const)("large tensors of a %s", (_, layer) => {
  it.live("keep their bytes, with many callers", () =>
    Effect.gen(function* () {
      const sizes = [10, 32_768, 65_536, 614_400, 2_097_152, 3_000_000]
      const calls = Array.from({ length: 60 }, (_, index) => {
        const [length, value] = [(sizes[index % sizes.length] ?? 0) + index, index + 1]
        return Effect.map(call(length, value), (answer) => assert.deepEqual(answer, { length, values: [value] }))
      })
      yield* Effect.all(calls, { concurrency: 16 })
    }).pipe(Effect.provide(layer)),
  )
})

describe.skipIf(python === undefined)("the memory of large tensors", () => {
  it.live("stays as it is while a model keeps it, also when all is kept", () =>
    Effect.gen(function* () {
      for (let value = 1; value <= 200; value++) {
        assert.deepEqual(yield* call(200_000, value), { length: 200_000, values: [1] })
      }
    }).pipe(Effect.provide(functionNamed("keep"))),
  )

  it.live("keeps its bytes when a fork of the process changes its own", () =>
    Effect.gen(function* () {
      for (const length of [100, 100_000, 3_000_000]) {
        assert.deepEqual(yield* call(length, 7), { length, values: [7] })
      }
    }).pipe(Effect.provide(functionNamed("fork"))),
  )

  it.live.skipIf(!existsSync("/proc/self/fd"))("is open in the server until the process has ended", () =>
    Effect.gen(function* () {
      const before = descriptors()
      yield* Effect.provide(
        Effect.gen(function* () {
          yield* call(100_000, 5)
          assert.strictEqual(descriptors(), before + 1)
        }),
        functionNamed("same"),
      )
      assert.strictEqual(descriptors(), before)
    }),
  )
})
