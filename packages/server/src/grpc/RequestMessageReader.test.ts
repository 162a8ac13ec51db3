/** Messages cut into chunks at any position are read unchanged, and the memory budget is released. */
import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { frame } from "./GrpcServer.fixture.ts"
import { RequestMessageReader } from "./RequestMessageReader.ts"
import { MemoryBudget } from "../limit/MemoryBudget.ts"

const limits = (maxMessageSize = 1000, budget = 1_000_000) => ({
  maxMessageSize,
  memory: new MemoryBudget(budget).unattributed,
})

const makeReader = (options: ReturnType<typeof limits>) => new RequestMessageReader(options, options.memory)

const readAll = (reader: RequestMessageReader, chunk: Uint8Array): ReadonlyArray<Uint8Array> => {
  const messages: Array<Uint8Array> = []
  reader.add(chunk)
  while (reader.next()) messages.push(Uint8Array.from(reader.bytes.subarray(reader.start, reader.end)))
  return messages
}

it("messages that are cut anywhere come out whole and in order, and keep nothing", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })
  fc.assert(
    fc.property(messages, fc.array(fc.nat(300)), (messages, cuts) => {
      const options = limits()
      const reader = makeReader(options)
      const bytes = new Uint8Array(Buffer.concat(messages.map((message) => frame(message))))
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
      const found = places.slice(1).flatMap((end, index) => readAll(reader, bytes.slice(places[index], end)))
      expect(found).toEqual(messages.map((message) => new Uint8Array(message)))
      expect(reader.isBetween).toBe(true)
      // All of it is there again, and not more.
      expect(options.memory.take(1_000_000)).toBeUndefined()
      expect(options.memory.take(1)).toBeDefined()
    }),
  )
})

it("a chunk that it does not keep may be freed or overwritten, however it was cut", () => {
  const lengths = fc.array(fc.oneof(fc.nat(40), fc.nat(200_000)), { maxLength: 4 })
  fc.assert(
    fc.property(lengths, fc.array(fc.nat(600_000)), (lengths, cuts) => {
      const messages = lengths.map((length, index) => Uint8Array.from({ length }, (_, byte) => (byte + index) % 251))
      const reader = makeReader(limits(200_000, 2_000_000))
      const bytes = new Uint8Array(Buffer.concat(messages.map((message) => frame(message))))
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
      const found = places.slice(1).flatMap((end, index) => {
        const chunk = bytes.slice(places[index], end)
        const found = readAll(reader, chunk)
        if (!reader.keepsChunk) chunk.buffer.transfer(0)
        return found
      })
      expect(found.map((message, index) => Buffer.compare(message, messages[index] ?? bytes))).toEqual(
        messages.map(() => 0),
      )
      expect(found.length).toBe(messages.length)
      expect(reader.isBetween).toBe(true)
    }),
  )
})

it("keeps the chunk of a message in one piece, and of one that it has not found yet", () => {
  const reader = makeReader(limits())
  reader.add(Buffer.concat([frame(Uint8Array.of(1)), frame(Uint8Array.of(2))]))
  expect([reader.next(), reader.keepsChunk]).toEqual([true, true])
  expect([reader.next(), reader.next(), reader.keepsChunk]).toEqual([true, false, true])
  reader.add(Uint8Array.from(frame(Uint8Array.of(3)).subarray(0, 4)))
  expect([reader.next(), reader.keepsChunk]).toEqual([false, true])
  reader.add(Buffer.concat([frame(Uint8Array.of(3)).subarray(4), frame(Uint8Array.of(4))]))
  expect([reader.next(), reader.keepsChunk]).toEqual([true, true])
  expect([reader.next(), reader.next(), reader.keepsChunk]).toEqual([true, false, true])
  reader.add(Uint8Array.from(frame(Uint8Array.of(5)).subarray(0, 4)))
  expect(reader.next()).toBe(false)
  reader.add(frame(Uint8Array.of(5)).subarray(4))
  expect([reader.next(), reader.keepsChunk]).toEqual([true, false])
})

it("a message in one piece is a view on what came", () => {
  const reader = makeReader(limits())
  const chunk = frame(Uint8Array.of(1, 2, 3))
  reader.add(chunk)
  expect(reader.next()).toBe(true)
  expect([reader.bytes === chunk, reader.start, reader.end]).toEqual([true, 5, 8])
})

it("one that is too large, compressed or flagged otherwise is refused at its prefix, and nothing is read behind it", () => {
  const cases = [
    [frame(new Uint8Array(0), 0, 1001), "Received message larger than max (1001 vs. 1000)"],
    [frame(new Uint8Array(0), 0, 2 ** 32 - 1), "Received message larger than max (4294967295 vs. 1000)"],
    [frame(new Uint8Array(0), 1), "received a compressed message without a grpc-encoding header"],
    [frame(new Uint8Array(0), 7), "invalid compressed flag 7 of a message, expected 0 or 1"],
  ] as const
  for (const [chunk, message] of cases) {
    const reader = makeReader(limits())
    expect(readAll(reader, chunk)).toEqual([])
    expect(reader.failure?.message).toBe(message)
    expect(readAll(reader, frame(Uint8Array.of(1)))).toEqual([])
  }
})

it("parts beyond what all may keep are refused; a release gives back what was kept", () => {
  const options = limits(1000, 700)
  const first = makeReader(options)
  const part = frame(new Uint8Array(200), 0, 500)
  expect(readAll(first, part)).toEqual([])
  expect(first.progress).toBe("205 bytes including the prefix, expected 505")
  const second = makeReader(options)
  expect(readAll(second, part)).toEqual([])
  expect(second.failure?.message).toMatch(/^callers hold 461 bytes/)
  first.release()
  const third = makeReader(options)
  expect(readAll(third, part)).toEqual([])
  expect(third.failure).toBeUndefined()
})

describe("a large message that comes in parts", () => {
  const length = 300_001
  const message = Uint8Array.from({ length }, (_, index) => index % 251)

  it.each([
    ["is joined as it comes", 2 ** 20],
    ["is kept in parts where it may not be joined ahead", 400_000],
  ])("%s, and ends where an element may end", (_, budget) => {
    const options = limits(2 ** 20, budget)
    for (const size of [1, 1000, 16_384, 299_000]) {
      // Single bytes would each cost a reader more than they are.
      const bytes = size === 1 ? [...frame(message).subarray(0, 10)].map((byte) => Uint8Array.of(byte)) : []
      const reader = makeReader(options)
      for (const byte of bytes) expect(readAll(reader, byte)).toEqual([])
      let found: ReadonlyArray<Uint8Array> = []
      for (let start = bytes.length; start < length + 5; start += Math.max(10_000, size)) {
        found = readAll(reader, frame(message).subarray(start, start + Math.max(10_000, size)))
      }
      expect(reader.failure).toBeUndefined()
      expect(found.map((one) => Buffer.compare(one, message))).toEqual([0])
      expect((reader.bytes.byteOffset + reader.end) % 8).toBe(0)
      expect(options.memory.take(budget)).toBeUndefined()
      options.memory.give(budget)
    }
  })

  it("holds no more than half of what all may keep with memory ahead of what has come", () => {
    const options = limits(2 ** 20, 800_000)
    const readers = Array.from({ length: 3 }, () => makeReader(options))
    const part = frame(message).subarray(0, 10_000)
    for (const reader of readers) expect(readAll(reader, part)).toEqual([])
    // One has reserved its message, the others hold what they have.
    expect(options.memory.take(800_000 - 300_006 - 2 * 10_256)).toBeUndefined()
    expect(options.memory.take(1)?.message).toMatch(/at most 800000/)
  })
})
