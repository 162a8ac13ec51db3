import { expect, it } from "@effect/vitest"
import { Envelopes } from "./Envelopes.ts"
import { coalesceChunks } from "./coalesceChunks.ts"

const message = (length: number): Uint8Array => {
  const bytes = new Uint8Array(5 + length).map((_, index) => index % 251)
  new DataView(bytes.buffer).setUint32(1, length)
  bytes[0] = 0
  return bytes
}

async function* cut(bytes: Uint8Array, size: number) {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

const collect = async (chunks: AsyncIterable<Uint8Array>, envelopes?: Envelopes) => {
  const found: Array<Uint8Array> = []
  for await (const chunk of coalesceChunks(chunks, envelopes)) found.push(chunk)
  return found
}

it.each([
  [3_000_000, 16_384],
  [3_000_000, 1_000_000],
  [300_000, 1],
  [0, 1],
])("of a message of %i bytes in parts of %i there are few, and nothing is missing", async (length, size) => {
  const bytes = Buffer.concat([message(length), message(7)])
  for (const envelopes of [new Envelopes(), undefined]) {
    const found = await collect(cut(bytes, size), envelopes)
    expect(Buffer.concat(found).equals(bytes)).toBe(true)
    expect(found.length).toBeLessThan(16)
  }
})

it("the length of a message is handed on at once", async () => {
  async function* chunks() {
    for (const byte of message(100_000)) yield Uint8Array.of(byte)
  }
  const iterator = coalesceChunks(chunks(), new Envelopes())
  for (let byte = 0; byte < 5; byte++) expect((await iterator.next()).value?.length).toBe(1)
  expect((await iterator.next()).value?.length).toBe(64 * 1024)
})

it("a message that is whole is handed on before anything else comes", async () => {
  const parts = [message(10).subarray(0, 8), Buffer.concat([message(10).subarray(8), message(3)]), message(4)]
  let pulled = 0
  async function* chunks() {
    for (const part of parts) {
      pulled += 1
      yield part
    }
  }
  const iterator = coalesceChunks(chunks(), new Envelopes())
  for (const [index, length] of [8, 15, 9].entries()) {
    expect([(await iterator.next()).value?.length, pulled]).toEqual([length, index + 1])
  }
  expect((await iterator.next()).done).toBe(true)
})
