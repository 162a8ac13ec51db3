/** Results without WebAssembly are the same as with it. */
import { afterEach, assert, it, vi } from "@effect/vitest"

afterEach(() => {
  vi.unstubAllGlobals()
  vi.resetModules()
})

const roundTrip = async () => {
  vi.resetModules()
  const { numberKernel } = await import("./NumberKernel.ts")
  const { readElements } = await import("./JsonElements.ts")
  const { JsonReader } = await import("./JsonReader.ts")
  const { JsonWriter } = await import("./JsonWriter.ts")
  const text = new TextEncoder().encode(`[${Array.from({ length: 100 }, (_, index) => index / 7).join()}]`)
  const bytes = readElements(new JsonReader(text, "request"), "FP32", 100, "X")
  const writer = new JsonWriter()
  writer.elements({ name: "Y", datatype: "FP32", shape: [100], bytes })
  return { hasKernel: numberKernel() !== undefined, bytes, written: writer.written() }
}

const forbidden = () => {
  throw new Error("wasm-unsafe-eval")
}

it.each([
  ["none at all", undefined],
  ["one that is forbidden", { Module: vi.fn(forbidden) }],
])("JavaScript reads and writes alone, with %s", async (_, global) => {
  const expected = await roundTrip()
  vi.stubGlobal("WebAssembly", global)
  assert.deepStrictEqual([expected.hasKernel, await roundTrip()], [true, { ...expected, hasKernel: false }])
})
