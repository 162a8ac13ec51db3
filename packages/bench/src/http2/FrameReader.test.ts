import * as fc from "fast-check"
import { expect, it } from "vitest"
import { encode, Flag, Type } from "./Frame.ts"
import { FrameError, FrameReader } from "./FrameReader.ts"

/** Reads bytes that arrive in parts. Returns each frame, with its DATA concatenated. */
const read = (parts: ReadonlyArray<Buffer>) => {
  const frames: Array<unknown> = []
  let data = { stream: 0, bytes: Buffer.alloc(0), counted: 0 }
  const reader = new FrameReader({
    onData: (stream, part, counted, last) => {
      data = { stream, bytes: Buffer.concat([data.bytes, part]), counted: data.counted + counted }
      if (!last) return
      frames.push({ ...data, bytes: data.bytes.toString("hex") })
      data = { stream: 0, bytes: Buffer.alloc(0), counted: 0 }
    },
    onFrame: (type, flags, stream, payload) => frames.push({ type, flags, stream, bytes: payload.toString("hex") }),
  })
  for (const part of parts) reader.read(Buffer.from(part))
  return frames
}

const frame = fc.record({
  type: fc.constantFrom(Type.DATA, Type.HEADERS, Type.PING, 77),
  stream: fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  bytes: fc.uint8Array({ maxLength: 40 }),
  padding: fc.option(fc.integer({ min: 0, max: 255 }), { nil: undefined }),
})

it("gives the frames that were written, without padding, however they are cut", () => {
  fc.assert(
    fc.property(fc.array(frame), fc.infiniteStream(fc.integer({ min: 1, max: 60 })), (frames, lengths) => {
      const expected: Array<unknown> = []
      const written = frames.map(({ type, stream, bytes, padding }) => {
        const mayPad = type === Type.DATA || type === Type.HEADERS
        const payload =
          mayPad && padding !== undefined ? Buffer.concat([Buffer.of(padding), bytes, Buffer.alloc(padding)]) : bytes
        const flags = (mayPad && padding !== undefined ? Flag.PADDED : 0) | (type === Type.DATA ? Flag.END_STREAM : 0)
        const hex = Buffer.from(bytes).toString("hex")
        expected.push(
          type === Type.DATA ? { stream, bytes: hex, counted: payload.length } : { type, flags, stream, bytes: hex },
        )
        return encode(type, flags, stream, payload)
      })
      const all = Buffer.concat(written)
      const parts: Array<Buffer> = []
      for (let offset = 0; offset < all.length;) {
        const part = all.subarray(offset, offset + lengths.next().value)
        parts.push(part)
        offset += part.length
      }
      expect(read(parts)).toEqual(expected)
    }),
  )
})

it("leaves out the priority of HEADERS", () => {
  const payload = Buffer.from("0280000001ff880000", "hex")
  const bytes = encode(Type.HEADERS, Flag.PADDED | Flag.PRIORITY, 1, payload)
  expect(read([bytes])).toMatchObject([{ bytes: "88" }])
})

it.each([
  ["a frame that is too large", encode(Type.DATA, 0, 1, Buffer.alloc(16_385))],
  ["more padding than payload", encode(Type.DATA, Flag.PADDED, 1, Buffer.of(2, 0))],
  ["more padding than header block", encode(Type.HEADERS, Flag.PADDED, 1, Buffer.of(2, 0))],
])("refuses %s", (_, bytes) => {
  expect(() => read([bytes])).toThrow(FrameError)
})
