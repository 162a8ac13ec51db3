/** Frames over a real socket, in any portions. */
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { Writable } from "node:stream"
import { BodyPool } from "./BodyPool.ts"
import { FrameBody } from "./FrameBody.ts"
import { type Frame, FrameReader } from "./FrameReader.ts"
import * as FrameWriter from "./FrameWriter.ts"

const bodyOf = (...parts: ReadonlyArray<Uint8Array>): FrameBody => {
  const body = new FrameBody()
  for (const part of parts) body.add(part)
  return body
}

/** The bytes of frames as they are written. */
const written = (frames: ReadonlyArray<readonly [kind: number, header: string, body: FrameBody]>): Buffer => {
  const chunks: Array<Buffer> = []
  const stream = new Writable({
    write: (chunk: Buffer, _, done) => {
      chunks.push(chunk)
      done()
    },
  })
  for (const [kind, header, body] of frames) FrameWriter.write(stream, kind, header, body)
  return Buffer.concat(chunks)
}

it("frames of all sizes arrive as they were written, in any portions", () => {
  const size = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 60_000, max: 200_000 }))
  const frame = fc.tuple(
    fc.nat(40),
    fc.record({ text: fc.string({ maxLength: 100 }) }),
    fc.array(size, { maxLength: 3 }),
  )
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 4 }), fc.integer({ min: 1, max: 100_000 }), (frames, portion) => {
      const sent = frames.map(([kind, header, sizes], index) => {
        const parts = sizes.map((size, part) => Buffer.alloc(size, index * 10 + part + 1))
        return [kind, JSON.stringify(header), bodyOf(...parts)] as const
      })
      const bytes = written(sent)
      const received: Array<Frame> = []
      const reader = new FrameReader((frame) => received.push(frame))
      for (let offset = 0; offset < bytes.length; offset += portion)
        reader.push(bytes.subarray(offset, offset + portion))
      expect(received.map(({ kind, header, body }) => [kind, header, Buffer.from(body).toString("latin1")])).toEqual(
        sent.map(([kind, header, body]) => [kind, header, Buffer.concat(body.chunks).toString("latin1")]),
      )
    }),
    { numRuns: 50 },
  )
})

it("a header longer than the staging memory arrives", () => {
  const header = JSON.stringify({ text: "x".repeat(300_000) })
  const received: Array<Frame> = []
  const reader = new FrameReader((frame) => received.push(frame))
  reader.push(
    written([
      [1, header, bodyOf()],
      [2, "{}", bodyOf(Buffer.from("after"))],
    ]),
  )
  expect(received.map((frame) => frame.header === header)).toEqual([true, false])
})

it("tensors of a body begin at multiples of 16, also over a socket that reads into the frame", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-frames-"))
  const path = join(folder, "socket")
  const parts = [Buffer.alloc(100_001, 1), Buffer.alloc(0), Buffer.alloc(3_000_000, 2), Buffer.alloc(7, 3)]
  const server = createServer((socket) => FrameWriter.write(socket, 1, '{"a":1}', bodyOf(...parts))).listen(path)
  await once(server, "listening")
  const frame = await new Promise<Frame>((resolve, reject) => {
    const reader = new FrameReader((frame) => {
      resolve(frame)
      socket.destroy()
    })
    const socket = connect({
      path,
      onread: { buffer: () => reader.space, callback: (count) => (reader.filled(count), true) },
    })
    socket.on("error", reject)
  })
  server.close()
  rmSync(folder, { recursive: true })
  let offset = 0
  for (const part of parts) {
    offset = Math.ceil(offset / 16) * 16
    expect(part.equals(frame.body.subarray(offset, offset + part.length))).toBe(true)
    offset += part.length
  }
  expect(frame.body).toHaveLength(offset)
})

it("a frame beyond the limits is refused before memory is allocated for it", () => {
  const head = Buffer.alloc(16)
  head.writeUInt32LE(17 * 2 ** 20, 0)
  const reader = new FrameReader(() => {})
  expect(() => reader.push(head)).toThrow("a frame has a header of 17825792 bytes and a body of 0 bytes")
})

it("large bodies come in memory of the pool, which later frames use again once it is released", () => {
  const pool = new BodyPool()
  const received: Array<Frame> = []
  const reader = new FrameReader((frame) => received.push(frame), pool)
  const feed = (bytes: Uint8Array) => {
    for (let offset = 0; offset < bytes.length;) {
      const { space } = reader
      const part = bytes.subarray(offset, offset + space.length)
      space.set(part)
      reader.filled(part.length)
      offset += part.length
    }
  }
  for (const value of [1, 2, 3, 4]) feed(written([[value, "{}", bodyOf(Buffer.alloc(100_000 + value, value))]]))
  feed(
    written(
      Array.from({ length: 200 }, (_, index) => [index % 100, "{}", bodyOf(Buffer.alloc(30, index % 100))] as const),
    ),
  )
  const large = received.slice(0, 4)
  expect(large.map(({ body }) => [body.length, body.every((byte) => byte === body[0])])).toEqual(
    [1, 2, 3, 4].map((value) => [100_000 + value, true]),
  )
  expect(received.slice(4).every(({ kind, body }) => body.length === 30 && body[29] === kind)).toBe(true)
  large[1]?.release?.()
  feed(written([[9, "{}", bodyOf(Buffer.alloc(100_001, 9))]]))
  expect(received.at(-1)?.body.buffer).toBe(large[1]?.body.buffer)
  expect([large[0]?.body[0], large[2]?.body[0]]).toEqual([1, 3])
})
