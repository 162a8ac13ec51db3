/** Shared memory for bodies, in a file that this process has open itself. */
import { closeSync, fstatSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Writable } from "node:stream"
import { afterEach, describe, expect, it } from "vitest"
import { BodyPool } from "./BodyPool.ts"
import { FrameBody } from "./FrameBody.ts"
import { type Frame, FrameReader } from "./FrameReader.ts"
import * as FrameWriter from "./FrameWriter.ts"
import { SharedBodies } from "./SharedBodies.ts"

const capacity = 2 ** 20
const cleanups: Array<() => void> = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** A file of both halves, and what a process would say of it. */
const makeFile = () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-test-"))
  const path = join(folder, "memory")
  const fd = openSync(path, "w+")
  ftruncateSync(fd, 2 * capacity)
  cleanups.push(() => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  })
  const memory = { pid: process.pid, fd, inode: fstatSync(fd).ino, capacity }
  return { fd, memory, content: () => readFileSync(path) }
}

const open = (memory: unknown): SharedBodies => {
  const shared = SharedBodies.open(memory)
  if (shared === undefined) throw new Error("it was not opened")
  cleanups.push(() => shared.close())
  return shared
}

const bodyOf = (...parts: ReadonlyArray<Uint8Array>): FrameBody => {
  const body = new FrameBody()
  for (const part of parts) body.append(part)
  return body
}

/** The bytes of one frame. */
const written = (shared: SharedBodies, body: FrameBody): Buffer => {
  const chunks: Array<Buffer> = []
  const stream = new Writable({ write: (chunk: Buffer, _, done) => (chunks.push(chunk), done()) })
  FrameWriter.write(stream, 1, "{}", body, shared)
  return Buffer.concat(chunks)
}

/** The bytes of a frame of the process: a body in its half, and the bodies of the server that it has released. */
const frameOf = (offset: number, length: number, released = 0): Buffer => {
  const frame = Buffer.alloc(18)
  frame.writeUInt32LE(2, 0)
  frame.writeUInt32LE(2 | (length > 0 ? 0x80 : 0) | (released << 8), 4)
  frame.writeUInt32LE(length, 8)
  frame.writeUInt32LE(offset, 12)
  frame.write("{}", 16)
  return frame
}

const readerOf = (shared: SharedBodies) => {
  const frames: Array<Frame> = []
  const reader = new FrameReader((frame) => frames.push(frame), new BodyPool())
  reader.share(shared)
  return { reader, frames }
}

describe.skipIf(process.platform !== "linux")("shared memory", () => {
  it("takes the parts of a large body one behind another, and the frame has its place", () => {
    const { memory, content } = makeFile()
    const shared = open(memory)
    const parts = [Buffer.alloc(40_000, 1), Buffer.alloc(20_000, 2)]
    const first = written(shared, bodyOf(...parts))
    expect(first.length).toBe(18)
    expect(first[4]).toBe(0x81)
    expect(content().subarray(0, 60_000).equals(Buffer.concat(parts))).toBe(true)
    const second = written(shared, bodyOf(Buffer.alloc(50_000, 3)))
    const [length, offset] = [second.readUInt32LE(8), second.readUInt32LE(12)]
    expect([length, offset]).toEqual([50_000, 60_032])
    expect(
      content()
        .subarray(offset, offset + length)
        .every((byte) => byte === 3),
    ).toBe(true)
  })

  it("leaves small bodies, very large ones, and those without room to the socket", () => {
    const shared = open(makeFile().memory)
    for (const length of [100, capacity / 8 + 1]) {
      const frame = written(shared, bodyOf(Buffer.alloc(length)))
      expect([frame[4], frame.length]).toEqual([1, 18 + length])
    }
    for (let count = 0; count < 8; count++) expect(shared.write(bodyOf(Buffer.alloc(capacity / 8)))).toBeDefined()
    expect(shared.write(bodyOf(Buffer.alloc(40_000)))).toBeUndefined()
    const { reader } = readerOf(shared)
    reader.push(frameOf(0, 0, 1))
    expect(shared.write(bodyOf(Buffer.alloc(40_000)))).toBe(0)
  })

  it("copies the bodies of the process, and says how many it has read", () => {
    const { fd, memory } = makeFile()
    const shared = open(memory)
    const { reader, frames } = readerOf(shared)
    writeSync(fd, Buffer.alloc(100_000, 7), 0, 100_000, capacity + 64)
    const bytes = Buffer.concat([frameOf(64, 100_000), frameOf(64, 100_000), frameOf(0, 0)])
    reader.push(bytes.subarray(0, 20))
    reader.push(bytes.subarray(20))
    writeSync(fd, Buffer.alloc(100_000, 8), 0, 100_000, capacity + 64)
    expect(frames.map(({ body }) => [body.length, body[0], body.at(-1)])).toEqual([
      [100_000, 7, 7],
      [100_000, 7, 7],
      [0, undefined, undefined],
    ])
    expect(written(shared, new FrameBody()).readUInt32LE(4) >>> 8).toBe(2)
  })

  it("refuses bodies that are not there, and releases of bodies that were not sent", () => {
    const shared = open(makeFile().memory)
    expect(() => readerOf(shared).reader.push(frameOf(capacity, 64))).toThrow(/a body ends at byte 1048640 of 1048576/)
    expect(() => readerOf(shared).reader.push(frameOf(0, 0, 1))).toThrow(/releases 1 bodies of 0/)
    const unshared = new FrameReader(() => {})
    expect(() => unshared.push(frameOf(0, 64))).toThrow(/in shared memory, and there is none/)
  })

  it("is not opened if the file is another one, or has another length", () => {
    const { memory } = makeFile()
    for (const wrong of [
      { ...memory, inode: memory.inode + 1 },
      { ...memory, capacity: capacity / 2 },
      { ...memory, fd: 99_999 },
      { ...memory, pid: "self/../self" },
      undefined,
    ]) {
      expect(SharedBodies.open(wrong)).toBeUndefined()
    }
  })

  it("neither reads nor writes once it is closed", () => {
    const shared = open(makeFile().memory)
    shared.close()
    shared.close()
    expect(shared.write(bodyOf(Buffer.alloc(40_000)))).toBeUndefined()
    expect(() => shared.read(0, new Uint8Array(8))).toThrow(/closed/)
  })
})
