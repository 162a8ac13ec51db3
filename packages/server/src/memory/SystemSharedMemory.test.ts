/** Loans of regions by themselves; over the protocols they are tested in SharedMemory.test.ts. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as fc from "fast-check"
import { SystemSharedMemory } from "./SystemSharedMemory.ts"

const harness = Effect.gen(function* () {
  const directory = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "regions-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  )
  const file = join(directory, "object")
  writeFileSync(file, "12345678")
  const memory = yield* Effect.acquireRelease(
    Effect.sync(() => new SystemSharedMemory({ directory })),
    (memory) => Effect.sync(() => memory.close()),
  )
  Result.getOrThrow(memory.register({ name: "r", key: "/object", offset: 2, byteSize: 4 }))
  const whole = { name: "r", byteSize: 4, offset: 0 }
  const tensor = { name: "X", datatype: "UINT8", shape: [4], bytes: new Uint8Array() }
  const head = { modelName: "m", modelVersion: "", id: "", parameters: {} }
  const outputs = [{ name: "X", binary: undefined, region: whole }]
  const borrow = (region = whole) => memory.borrow({ ...head, inputs: [{ ...tensor, region }], outputs })
  const response = { ...head, outputs: [{ ...tensor, bytes: Uint8Array.from([0x61, 0x62, 0x63, 0x64]) }] }
  const content = () => readFileSync(file, "latin1")
  return { memory, borrow, response, content }
})

it.effect("a loan has the bytes of its inputs, and writes those of its outputs where the region is", () =>
  Effect.gen(function* () {
    const { borrow, response, content } = yield* harness
    const loan = Result.getOrThrow(borrow())
    const [input] = loan.request.inputs
    assert.deepStrictEqual(input, {
      name: "X",
      datatype: "UINT8",
      shape: [4],
      bytes: Uint8Array.from(Buffer.from("3456")),
    })
    const [output] = Result.getOrThrow(loan.write(response)).outputs
    assert.deepStrictEqual([output?.bytes.length, output?.region], [0, { name: "r", byteSize: 4, offset: 0 }])
    assert.strictEqual(content(), "12abcd78")
    loan.release()
  }),
)

it.effect("a reference reads only its part of the region", () =>
  Effect.gen(function* () {
    const { borrow } = yield* harness
    const count = fc.oneof(fc.nat(9), fc.constantFrom(2 ** 31, 2 ** 53, 2 ** 64, Number.MAX_VALUE))
    fc.assert(
      fc.property(count, count, (offset, byteSize) => {
        const borrowed = borrow({ name: "r", offset, byteSize })
        if (offset >= 4 || offset + byteSize > 4) return assert(Result.isFailure(borrowed))
        const loan = Result.getOrThrow(borrowed)
        const bytes = Buffer.from("3456").subarray(offset, offset + byteSize)
        assert.deepStrictEqual(loan.request.inputs[0]?.bytes, Uint8Array.from(bytes))
        loan.release()
      }),
    )
  }),
)

it.effect("a region that is unregistered stays as long as one of its loans", () =>
  Effect.gen(function* () {
    const { memory, borrow, response } = yield* harness
    const loans = [Result.getOrThrow(borrow()), Result.getOrThrow(borrow())] as const
    const regions = () => Result.getOrThrow(memory.status("")).map(({ name }) => name)
    Result.getOrThrow(memory.unregister("r"))
    const later = Result.getOrThrow(borrow())
    loans[0].release()
    later.release()
    // A second time takes nothing from the other one.
    loans[0].release()
    assert.deepStrictEqual(regions(), ["r"])
    assert(Result.isSuccess(loans[1].write(response)))
    loans[1].release()
    assert.deepStrictEqual(regions(), [])
    assert(Result.isFailure(borrow()))
  }),
)

it.effect("nothing is written once a region is closed, whatever file has its number by then", () =>
  Effect.gen(function* () {
    const { memory, borrow, response, content } = yield* harness
    const loan = Result.getOrThrow(borrow())
    memory.close()
    const written = loan.write(response)
    assert(Result.isFailure(written))
    assert.include(
      written.failure.message,
      "Unable to write output 'X' to shared memory region: 'r', the object is closed",
    )
    assert.strictEqual(content(), "12345678")
    loan.release()
  }),
)
