import * as fc from "fast-check"
import { expect, it } from "vitest"
import { frame } from "./GrpcFrame.ts"
import { ResponseMessageReader } from "./ResponseMessageReader.ts"

const allocate = (length: number): Uint8Array => new Uint8Array(length)

interface Found {
  readonly message: ReadonlyArray<number>
  readonly length: number
}

const readAll = (reader: ResponseMessageReader<Uint8Array>, chunk: Uint8Array): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  reader.add(chunk)
  while (reader.next()) {
    found.push({ message: [...reader.bytes.subarray(reader.start, reader.end)], length: reader.length })
  }
  return found
}

const concat = (parts: ReadonlyArray<Uint8Array>): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]))

const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })

it("reads messages in order, however the bytes are cut, and keeps no view of a chunk", () => {
  fc.assert(
    fc.property(messages, fc.infiniteStream(fc.nat(50)), (sent, sizes) => {
      const reader = new ResponseMessageReader(1000, allocate)
      const all = concat(sent.map(frame))
      const found: Array<Found> = []
      for (let offset = 0; offset < all.length;) {
        const part = all.slice(offset, offset + sizes.next().value)
        found.push(...readAll(reader, part))
        part.fill(0xee)
        offset += part.length
      }
      expect(reader.isBetween).toBe(true)
      expect(found).toEqual(sent.map((message) => ({ message: [...message], length: message.length })))
    }),
  )
})

it("keeps only the beginning of a message that arrives in parts, and counts all of it", () => {
  const kept = fc.constantFrom(0, 10)
  fc.assert(
    fc.property(messages, fc.infiniteStream(fc.integer({ min: 1, max: 50 })), kept, (sent, sizes, kept) => {
      const reader = new ResponseMessageReader(Infinity, allocate, kept)
      const all = concat(sent.map(frame))
      const found: Array<Found> = []
      for (let offset = 0; offset < all.length;) {
        const end = offset + sizes.next().value
        found.push(...readAll(reader, all.slice(offset, end)))
        offset = end
      }
      expect(found.map(({ length }) => length)).toEqual(sent.map(({ length }) => length))
      for (const [index, { message }] of found.entries()) {
        expect(message.slice(0, kept)).toEqual([...(sent[index] ?? [])].slice(0, kept))
      }
    }),
  )
})

it("leaves a message within one chunk where it is", () => {
  const reader = new ResponseMessageReader(10, allocate)
  const chunk = concat([frame(Uint8Array.of(1)), frame(Uint8Array.of(2, 3))])
  reader.add(chunk)
  expect([reader.next(), reader.bytes === chunk, reader.start, reader.end]).toEqual([true, true, 5, 6])
  expect(reader.isBetween).toBe(false)
  expect([reader.next(), reader.bytes === chunk, reader.start, reader.end]).toEqual([true, true, 11, 13])
  expect(reader.isBetween).toBe(true)
  expect([reader.next(), reader.bytes.length]).toEqual([false, 0])
})

it("accepts a message of exactly its limit", () => {
  const reader = new ResponseMessageReader(2, allocate)
  expect(readAll(reader, frame(Uint8Array.of(1, 2)))).toEqual([{ message: [1, 2], length: 2 }])
})

it.each([
  ["a message above the limit", Uint8Array.of(0, 0, 0, 0, 3), "too large", 3],
  ["the largest length", Uint8Array.of(0, 255, 255, 255, 255), "too large", 2 ** 32 - 1],
  ["a compressed message", Uint8Array.of(1, 0, 0, 0, 1), "compressed", 1],
  ["an invalid flag", Uint8Array.of(7, 0, 0, 0, 1), "compressed", 1],
] as const)(
  "refuses %s at its prefix, behind messages that are fine, and reads nothing else",
  (_, prefix, ...refused) => {
    for (const cut of [0, 1, 4, 5, 6, 7, 9]) {
      const reader = new ResponseMessageReader(2, allocate)
      const bytes = concat([frame(Uint8Array.of(9)), prefix])
      const found = [...readAll(reader, bytes.slice(0, cut)), ...readAll(reader, bytes.slice(cut))]
      expect(found).toEqual([{ message: [9], length: 1 }])
      expect([reader.refusal, reader.length]).toEqual(refused)
      expect(readAll(reader, frame(Uint8Array.of(1)))).toEqual([])
    }
  },
)

it("reports the received part of an incomplete message", () => {
  const reader = new ResponseMessageReader(10, allocate)
  const bytes = frame(Uint8Array.of(1, 2, 3))
  const seen = []
  for (const byte of bytes.subarray(0, 7)) {
    readAll(reader, Uint8Array.of(byte))
    seen.push([reader.received, reader.length, reader.isBetween])
  }
  expect(seen).toEqual([0, 0, 0, 0, 3, 3, 3].map((length, index) => [Math.max(0, index - 4), length, false]))
})
