/**
 * Attacks on a connection, each with the bound that docs/guides/limits.md documents. StreamResets.test.ts of the server
 * has those by cancelled calls, and GrpcLimits.test.ts those by slow bodies and unread responses.
 */
import { describe, expect, it } from "vitest"
import { ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Setting, Type } from "../frame/Frame.ts"
import { burst, perSecond } from "./FloodBudget.ts"
import { maxBlockSize, maxContinuations } from "./PendingBlock.ts"
import { Lonely, okHead, okTrailers } from "./Peers.fixture.ts"

const calm = ErrorCode.ENHANCE_YOUR_CALM

const eight = Buffer.alloc(8)

/** Frames that cost their sender nothing. */
const cheap: ReadonlyArray<readonly [name: string, frame: Buffer]> = [
  ["pings", Frame.encode(Type.PING, 0, 0, eight)],
  ["acknowledged pings that were not sent", Frame.encode(Type.PING, Flag.ACK, 0, eight)],
  ["settings", Frame.settings([])],
  ["acknowledged settings", Frame.encode(Type.SETTINGS, Flag.ACK, 0, Buffer.alloc(0))],
  ["window updates of the connection", Frame.windowUpdate(0, 1)],
  ["window updates of a stream", Frame.windowUpdate(1, 1)],
  ["empty data", Frame.encode(Type.DATA, 0, 1, Buffer.alloc(0))],
  ["priorities", Frame.encode(Type.PRIORITY, 0, 1, Buffer.alloc(5))],
  ["frames of an unknown type", Frame.encode(99, 0, 0, Buffer.alloc(3))],
  ["GOAWAY", Frame.goaway(0, 0, "")],
]

describe("a flood of", () => {
  it.each(cheap)("%s ends the connection behind the burst", (_, frame) => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const many = Buffer.concat(Array.from({ length: 100 }, () => frame))
    let count = 0
    while (peer.failure === undefined && count <= 2 * burst) {
      peer.receive(many)
      count += 100
      peer.connection.take()
    }
    expect(peer.failure).toBe(calm)
    expect(count).toBeGreaterThanOrEqual(burst)
    expect(count).toBeLessThanOrEqual(burst + 200)
  })

  it.each(cheap)("%s at the permitted rate does not", (_, frame) => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const many = Buffer.concat(Array.from({ length: perSecond / 10 }, () => frame))
    for (let tenth = 0; tenth < (2 * burst) / (perSecond / 10); tenth++) {
      peer.now += 100
      peer.receive(many)
      peer.connection.take()
    }
    expect(peer.failure).toBeUndefined()
  })

  it("window updates and pings of a client with as many messages does not", () => {
    const peer = new Lonely()
    for (let id = 1; id < 60_000; id += 2) {
      peer.receive(
        peer.request(id, [], 0),
        Frame.encode(Type.DATA, Flag.END_STREAM, id, eight),
        Frame.encode(Type.PING, 0, 0, eight),
        Frame.windowUpdate(0, 8),
        Frame.windowUpdate(id, 8),
      )
      const stream = peer.recorder.streams.pop()
      if (stream !== undefined) peer.connection.message(stream, okHead, eight, okTrailers)
      peer.connection.take()
    }
    expect(peer.failure).toBeUndefined()
  })

  it("window updates of a peer that reads a large body frame by frame does not, as HAProxy does", () => {
    const peer = new Lonely("server", {})
    peer.receive(peer.request(1))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.data(stream, Buffer.alloc(400 * 2 ** 20))
    peer.connection.take()
    for (let count = 0; count < burst; count++) {
      peer.receive(Frame.windowUpdate(0, 16_384), Frame.windowUpdate(1, 16_384))
      peer.connection.take()
    }
    expect(peer.failure).toBeUndefined()
    expect(stream.queued).toBeLessThan(400 * 2 ** 20 - burst * 16_384)
  })

  it("requests beyond the limit of streams ends the connection", () => {
    const peer = new Lonely("server", { maxConcurrentStreams: 10 })
    let id = 1
    for (; peer.failure === undefined && id < 4 * burst; id += 2) {
      peer.receive(peer.request(id))
      peer.connection.take()
    }
    expect(peer.failure).toBe(calm)
    expect(peer.recorder.streams).toHaveLength(10)
    expect(id / 2).toBeLessThan(burst + 100)
  })

  it("streams that a client makes us reset ends the connection (CVE-2025-8671)", () => {
    const peer = new Lonely()
    let id = 1
    for (; peer.failure === undefined && id < 4 * burst; id += 2) {
      peer.receive(peer.request(id), Frame.windowUpdate(id, 0))
      peer.connection.take()
    }
    expect(peer.failure).toBe(calm)
    // Each request allows 4 frames, and each reset costs 10 and its frame 1.
    expect(id / 2).toBeLessThan(burst / 6)
  })
})

it("requests that their client resets at once leave nothing behind; the server limits them (ResetBudget.ts)", () => {
  const peer = new Lonely()
  for (let id = 1; id < 200_000; id += 2) {
    peer.receive(peer.request(id, [], 0), Frame.reset(id, ErrorCode.CANCEL))
    expect(peer.recorder.streams.pop()?.isClosed).toBe(true)
    peer.recorder.headers.length = 0
  }
  expect(peer.connection.size).toBe(0)
  expect(peer.connection.outputSize).toBe(0)
})

describe("a half-closed stream", () => {
  const half = () => {
    const peer = new Lonely()
    peer.receive(peer.request(1))
    peer.connection.take()
    return peer
  }

  it("that its client has ended accepts no data and no headers, and no response to it", () => {
    const block = Frame.encode(Type.HEADERS, Flag.END_HEADERS, 1, Buffer.of(0x82))
    for (const frame of [Frame.encode(Type.DATA, 0, 1, eight), block]) {
      const peer = half()
      peer.receive(frame)
      expect(peer.replies()).toEqual([`RST_STREAM 1 ${ErrorCode.STREAM_CLOSED}`])
      const [stream] = peer.recorder.streams
      if (stream === undefined) throw new Error("no stream")
      peer.connection.message(stream, okHead, eight, okTrailers)
      expect(peer.replies()).toEqual([])
    }
  })

  it("gets window updates of its client, up to the limit of frames", () => {
    const peer = half()
    let count = 0
    for (; peer.failure === undefined && count < 2 * burst; count++) peer.receive(Frame.windowUpdate(1, 1))
    expect(peer.failure).toBe(calm)
    expect(count).toBeLessThanOrEqual(burst + 10)
  })
})

describe("a header block", () => {
  const start = Frame.encode(Type.HEADERS, Flag.END_STREAM, 1, Buffer.of(0x82))

  it("without an end ends the connection, in frames", () => {
    const peer = new Lonely()
    peer.receive(start)
    let count = 0
    for (; peer.failure === undefined && count < 1000; count++) {
      peer.receive(Frame.encode(Type.CONTINUATION, 0, 1, Buffer.alloc(0)))
    }
    expect(peer.failure).toBe(calm)
    expect(count).toBe(maxContinuations + 1)
  })

  it("without an end ends the connection, in bytes", () => {
    const peer = new Lonely()
    peer.receive(start)
    let count = 0
    for (; peer.failure === undefined && count < 1000; count++) {
      peer.receive(Frame.encode(Type.CONTINUATION, 0, 1, Buffer.alloc(16_000)))
    }
    expect(peer.failure).toBe(calm)
    expect(count * 16_000).toBeLessThanOrEqual(maxBlockSize + 16_000)
  })

  it("that expands to gigabytes is refused, and nothing of it is kept (HPACK bomb)", () => {
    const peer = new Lonely()
    // One field of 4,000 bytes, and 12,000 references to it.
    const value = Buffer.alloc(4000, "v")
    const field = Buffer.concat([Buffer.of(0x40, 1), Buffer.from("a"), Buffer.of(0x7f, 0xa1, 0x1e), value])
    peer.receive(
      Frame.encode(
        Type.HEADERS,
        Flag.END_HEADERS | Flag.END_STREAM,
        1,
        Buffer.concat([field, Buffer.alloc(12_000, 0xbe)]),
      ),
    )
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${calm}`])
    expect(peer.recorder.events).toEqual([])
    expect(peer.failure).toBeUndefined()
  })

  it("with more than 64 KiB of fields, or more than 128 fields, is refused, and the connection goes on", () => {
    const peer = new Lonely()
    const many = Array.from({ length: 130 }, (_, index) => [`x-${index}`, "1"]).flat()
    peer.receive(peer.request(1, many))
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${calm}`])
    const block = peer.encoder.encode(undefined, ["x", "0".repeat(66_000)])
    const frames = [0, 16_000, 32_000].map((from) => block.subarray(from, from + 16_000))
    for (const [index, part] of frames.entries()) {
      const isLast = index === 2
      const flags = (isLast ? Flag.END_HEADERS : 0) | (index === 0 ? Flag.END_STREAM : 0)
      peer.receive(Frame.encode(index === 0 ? Type.HEADERS : Type.CONTINUATION, flags, 3, part))
    }
    peer.receive(peer.request(5))
    expect(peer.recorder.events).toEqual(["5 POST /echo", "5 end"])
  })
})

it("an unfinished frame or header block is known, for a limit in time", () => {
  const peer = new Lonely()
  const { connection } = peer
  const ping = Frame.encode(Type.PING, 0, 0, eight)
  expect(connection.unfinished).toBe(0)
  peer.receive(ping.subarray(0, 3))
  const frame = connection.unfinished
  expect(frame).not.toBe(0)
  peer.receive(ping.subarray(3, 12))
  expect(connection.unfinished).toBe(frame)
  peer.receive(Buffer.concat([ping.subarray(12), ping.subarray(0, 3)]))
  expect([0, frame]).not.toContain(connection.unfinished)
  peer.receive(ping.subarray(3))
  expect(connection.unfinished).toBe(0)

  // Data that is still to come is not limited here.
  peer.receive(peer.request(1, [], 0))
  peer.receive(Frame.encode(Type.DATA, 0, 1, Buffer.alloc(100)).subarray(0, 50))
  expect(connection.unfinished).toBe(0)
  peer.receive(Buffer.alloc(59))

  peer.receive(Frame.encode(Type.HEADERS, Flag.END_STREAM, 3, Buffer.of(0x82)))
  const block = connection.unfinished
  expect(block).not.toBe(0)
  const part = Frame.encode(Type.CONTINUATION, 0, 3, Buffer.of(0x84))
  for (const cut of [part, part.subarray(0, 5), part.subarray(5)]) {
    peer.receive(cut)
    expect(connection.unfinished).toBe(block)
  }
  peer.receive(Frame.encode(Type.CONTINUATION, Flag.END_HEADERS, 3, Buffer.of(0x86)))
  expect(connection.unfinished).toBe(0)
})

describe("a peer that does not read", () => {
  it("and opens no window gets no data, which waits with its stream", () => {
    const peer = new Lonely()
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 0]]), peer.request(1))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    expect(peer.connection.data(stream, Buffer.alloc(1_000_000))).toBe(false)
    expect(peer.connection.outputSize).toBeLessThan(100)
  })

  it("and opens its window by single bytes ends the connection", () => {
    const peer = new Lonely()
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 0]]), peer.request(1))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.data(stream, Buffer.alloc(1_000_000))
    for (let count = 0; peer.failure === undefined && count < 2 * burst; count++) {
      peer.receive(Frame.windowUpdate(1, 1))
      peer.connection.take()
    }
    expect(peer.failure).toBe(calm)
  })

  it("from its socket gets at most 256 KiB beyond that", () => {
    const peer = new Lonely()
    peer.receive(
      Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 2 ** 30]]),
      Frame.windowUpdate(0, 2 ** 30),
      peer.request(1),
    )
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    for (let count = 0; count < 100; count++) peer.connection.data(stream, Buffer.alloc(100_000))
    expect(peer.connection.outputSize).toBeLessThan(400_000)
    peer.connection.take()
    peer.connection.setBlocked(true)
    peer.connection.pump()
    expect(peer.connection.outputSize).toBe(0)
  })
})

describe("settings", () => {
  it("that change the windows of many streams cost as much as their work", () => {
    const peer = new Lonely("server", { maxConcurrentStreams: 8192 })
    for (let id = 1; id < 2 * 8192; id += 2) peer.receive(peer.request(id, [], 0))
    let count = 0
    for (; peer.failure === undefined && count < burst; count++) {
      peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 1000 + (count % 2)]]))
      peer.connection.take()
    }
    expect(peer.failure).toBe(calm)
    expect(count).toBeLessThan(100)
  })
})

it("one byte at a time in paused streams is held as few objects", () => {
  const peer = new Lonely("server", { streamWindow: 4 * 2 ** 20, connectionWindow: 16 * 2 ** 20 })
  peer.receive(peer.request(1, [], 0))
  const [stream] = peer.recorder.streams
  if (stream === undefined) throw new Error("no stream")
  peer.connection.pause(stream)
  const one = Frame.encode(Type.DATA, 0, 1, Buffer.of(1))
  const many = Buffer.concat(Array.from({ length: 1000 }, () => one))
  for (let count = 0; count < 100; count++) peer.receive(many)
  expect(peer.recorder.held).toBe(100_000)
  let parts = 0
  stream.handler = { ...peer.recorder.handler(1), onData: () => (parts += 1) > 0 }
  peer.connection.resume(stream)
  expect(parts).toBeLessThan(20)
})
