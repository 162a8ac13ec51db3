import { expect, it } from "@effect/vitest"
import { noParameters, type Response } from "../request/Request.ts"
import { copy, ResponseStore } from "./ResponseStore.ts"
import { make } from "../tensor/TypedTensor.ts"

const response = (value: number, length = 10_000): Response => ({
  outputs: [make("UINT8", [length], new Uint8Array(length).fill(value))],
  parameters: noParameters,
})

const known = (store: ResponseStore, keys: string) => [...keys].filter((key) => store.get(key) !== undefined).join("")

it("evicts the least recently used entry", () => {
  const store = new ResponseStore(40_000)
  for (const key of "abc") store.set(key, response(1))
  expect(store.bytes).toBeGreaterThan(30_000)
  expect(store.get("a")?.outputs[0]?.data[0]).toBe(1)
  store.set("d", response(4))
  expect(known(store, "abcd")).toBe("acd")
  store.set("e", response(5, 20_000))
  expect(known(store, "abcde")).toBe("de")
  expect(store.bytes).toBeLessThanOrEqual(40_000)
})

it("ignores a response above the capacity, without evicting others", () => {
  const store = new ResponseStore(20_000)
  store.set("a", response(1))
  store.set("b", response(2, 20_000))
  expect(known(store, "ab")).toBe("a")
})

it("an answer anew takes the place of the one before; keys and parameters count; cleared, nothing is left", () => {
  const store = new ResponseStore(100_000)
  store.set("a", response(1))
  const once = store.bytes
  store.set("a", response(2))
  expect([store.bytes, store.get("a")?.outputs[0]?.data[0]]).toEqual([once, 2])
  store.set("b".repeat(10_000), response(1))
  expect(store.bytes).toBeGreaterThan(2 * once + 19_000)
  const before = store.bytes
  store.set("c", { ...response(1), parameters: { text: "d".repeat(10_000) } })
  expect(store.bytes).toBeGreaterThan(before + once + 19_000)
  store.clear()
  expect([store.bytes, store.get("a")]).toEqual([0, undefined])
})

it("a copy does not share bytes", () => {
  const one = response(1, 4)
  const other = copy({ outputs: [make("UINT8", [2], new Uint8Array(100).subarray(50, 52))], parameters: { a: 1n } })
  expect([other.outputs[0]?.bytes.buffer.byteLength, other.parameters]).toEqual([2, { a: 1n }])
  copy(one).outputs[0]?.bytes.fill(9)
  expect(one.outputs[0]?.data[0]).toBe(1)
})
