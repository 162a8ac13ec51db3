import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ErrorCode } from "../frame/ErrorCode.ts"
import * as Frame from "../frame/Frame.ts"
import { Flag, Setting, Type } from "../frame/Frame.ts"
import { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { Connection, type ConnectionEvents, type ConnectionOptions, type Stream } from "./Connection.ts"
import { exchange, Lonely, okHead, okTrailers, requestTemplate } from "./Peers.fixture.ts"

const bytes = (length: number) => Buffer.alloc(length, "x")

const data = (stream: number, length: number, flags = 0) => Frame.encode(Type.DATA, flags, stream, bytes(length))

describe("a request", () => {
  it("is answered in one piece", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0), data(1, 5, Flag.END_STREAM))
    expect(peer.recorder.events).toEqual(["1 POST /echo", "1 data 5", "1 end"])
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.message(stream, okHead, bytes(3), okTrailers)
    expect(peer.connection.take()).toHaveLength(1)
    expect(peer.recorder.events.at(-1)).toBe("1 close 0")
    expect(peer.connection.size).toBe(0)
  })

  it("ends once, with a response that comes within its last bytes", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    const closes: Array<number> = []
    stream.handler = {
      ...peer.recorder.handler(1),
      onData: () => {
        peer.connection.message(stream, okHead, bytes(3), okTrailers)
        return false
      },
      onClose: (code) => closes.push(code),
    }
    peer.receive(data(1, 5, Flag.END_STREAM))
    expect(closes).toEqual([0])
    expect(peer.replies()).toEqual(["HEADERS 1 :status 200", "DATA 1 3", "HEADERS 1 grpc-status 0"])
  })

  it("that its client cancels within the same bytes gets no response, and those around it do", () => {
    const peer = new Lonely()
    const respond = [
      (stream: Stream) => peer.connection.message(stream, okHead, bytes(3), okTrailers),
      (stream: Stream) => peer.connection.head(stream, okTrailers, [], true),
    ]
    peer.onStream = (stream) => respond[(stream.id >>> 1) % 2]?.(stream)
    peer.receive(...[1, 3, 5, 7, 9].map((id) => peer.request(id)), Frame.reset(3, 8), Frame.reset(5, 8))
    expect(peer.replies().join(", ")).toBe(
      "HEADERS 1 :status 200, DATA 1 3, HEADERS 1 grpc-status 0, HEADERS 7 grpc-status 0, " +
        "HEADERS 9 :status 200, DATA 9 3, HEADERS 9 grpc-status 0",
    )
    expect(peer.connection.size).toBe(0)
    peer.receive(Frame.reset(9, 8))
    expect(peer.replies()).toEqual([])
  })

  it("is answered before the error that ends its connection, in the same bytes", () => {
    const peer = new Lonely()
    peer.onStream = (stream) => peer.connection.message(stream, okHead, bytes(3), okTrailers)
    peer.receive(peer.request(1), Frame.encode(Type.PING, 0, 0, bytes(1)))
    expect(peer.replies().slice(2)).toEqual(["HEADERS 1 grpc-status 0", `GOAWAY ${ErrorCode.FRAME_SIZE_ERROR}`])
  })

  it("has trailers, which end it", () => {
    const peer = new Lonely()
    const trailers = Frame.encode(
      Type.HEADERS,
      Flag.END_HEADERS | Flag.END_STREAM,
      1,
      peer.encoder.encode(undefined, ["x-end", "1"]),
    )
    peer.receive(peer.request(1, [], 0), data(1, 1), trailers)
    expect(peer.recorder.events).toEqual(["1 POST /echo", "1 data 1", "1 trailers", "1 end"])
  })

  it("that pauses holds its data back, counts it, and has it in order when it resumes", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.pause(stream)
    for (let part = 0; part < 100; part++) peer.receive(data(1, 10))
    peer.receive(data(1, 5000, Flag.END_STREAM))
    expect(peer.recorder.events).toEqual(["1 POST /echo"])
    expect(peer.recorder.held).toBe(6000)
    peer.connection.resume(stream)
    expect(peer.recorder.held).toBe(0)
    const sizes = peer.recorder.events.flatMap((event) => (event.startsWith("1 data ") ? [Number(event.slice(7))] : []))
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(6000)
    // Small parts were joined.
    expect(sizes.length).toBeLessThan(5)
    expect(peer.recorder.events.at(-1)).toBe("1 end")
  })
})

describe("windows", () => {
  it("of a stream hold data back, until the peer opens them", () => {
    const peer = new Lonely()
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 10]]), peer.request(1))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.sent()
    peer.connection.message(stream, okHead, bytes(25), okTrailers)
    expect(peer.replies()).toEqual(["HEADERS 1 :status 200", "DATA 1 10"])
    peer.receive(Frame.windowUpdate(1, 10))
    expect(peer.replies()).toEqual(["DATA 1 10"])
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 100]]))
    expect(peer.replies()).toEqual(["SETTINGS 0", "DATA 1 5", "HEADERS 1 grpc-status 0"])
  })

  it("may become negative", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.head(stream, okHead, [], false)
    peer.connection.data(stream, bytes(100))
    peer.sent()
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 50]]))
    peer.connection.data(stream, bytes(10))
    expect(peer.replies()).toEqual(["SETTINGS 0"])
    peer.receive(Frame.windowUpdate(1, 55))
    expect(peer.replies()).toEqual(["DATA 1 5"])
  })

  it("of the connection are shared in turns", () => {
    const peer = new Lonely()
    peer.receive(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 1_000_000]]), peer.request(1), peer.request(3))
    for (const stream of peer.recorder.streams) peer.connection.data(stream, bytes(200_000))
    peer.sent()
    for (let turn = 0; turn < 4; turn++) peer.receive(Frame.windowUpdate(0, 65_536))
    const streams = peer.sent().map(({ stream }) => stream)
    expect(streams.filter((id) => id === 1)).toHaveLength(8)
    expect(streams.filter((id) => id === 3)).toHaveLength(8)
  })

  it("are opened again once half of them was read, and not for what is held back", () => {
    const peer = new Lonely("server", { streamWindow: 1000, connectionWindow: 65_535 })
    peer.receive(peer.request(1, [], 0), data(1, 499))
    expect(peer.replies()).toEqual([])
    peer.receive(data(1, 1))
    expect(peer.replies()).toEqual(["WINDOW_UPDATE 1 500"])
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.pause(stream)
    peer.receive(data(1, 600))
    expect(peer.replies()).toEqual([])
    peer.connection.resume(stream)
    expect(peer.replies()).toEqual(["WINDOW_UPDATE 1 600"])
  })

  it("count padding", () => {
    const peer = new Lonely("server", { streamWindow: 1000, connectionWindow: 65_535 })
    const padded = Frame.encode(Type.DATA, Flag.PADDED, 1, Buffer.concat([Buffer.of(255), bytes(244), bytes(255)]))
    peer.receive(peer.request(1, [], 0), padded)
    expect(peer.recorder.events.at(-1)).toBe("1 data 244")
    expect(peer.replies()).toEqual(["WINDOW_UPDATE 1 500"])
  })

  it("that are exceeded end the stream, or the connection", () => {
    const peer = new Lonely("server", { streamWindow: 100 })
    peer.receive(peer.request(1, [], 0), data(1, 101))
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${ErrorCode.FLOW_CONTROL_ERROR}`])
    const other = new Lonely("server", { streamWindow: 2 ** 20 })
    other.connection.take()
    other.receive(other.request(1, [], 0))
    const [stream] = other.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    // Held back, beyond what is credited at once.
    other.connection.pause(stream)
    for (let sent = 0; other.failure === undefined && sent < 40 * 2 ** 20; sent += 16_000)
      other.receive(data(1, 16_000))
    expect(other.failure).toBeUndefined()
  })
})

describe("requests that are malformed are reset, and the connection goes on", () => {
  const valid = [":method", "POST", ":scheme", "http", ":path", "/", ":authority", "a"]
  it.each([
    ["no path", [":method", "POST", ":scheme", "http", ":authority", "a"]],
    ["an empty path", [":method", "POST", ":scheme", "http", ":path", "", ":authority", "a"]],
    ["a path with a space", [":method", "POST", ":scheme", "http", ":path", "/a b", ":authority", "a"]],
    ["no scheme", [":method", "POST", ":path", "/", ":authority", "a"]],
    ["no authority and no host", [":method", "POST", ":scheme", "http", ":path", "/"]],
    ["an empty authority", [":method", "POST", ":scheme", "http", ":path", "/", ":authority", ""]],
    ["an authority with a space", [":method", "POST", ":scheme", "http", ":path", "/", ":authority", "a b"]],
    ["an empty host", [...valid, "host", ""]],
    ["two methods", [...valid, ":method", "GET"]],
    ["a pseudo-header of responses", [...valid, ":status", "200"]],
    ["an unknown pseudo-header", [...valid, ":other", "1"]],
    [
      "a pseudo-header behind a field",
      [":method", "POST", ":path", "/", ":authority", "a", "a", "b", ":scheme", "http"],
    ],
    ["a name in upper case", [...valid, "Abc", "1"]],
    ["a name with a space", [...valid, "a b", "1"]],
    ["an empty name", [...valid, "", "1"]],
    ["connection", [...valid, "connection", "close"]],
    ["transfer-encoding", [...valid, "transfer-encoding", "chunked"]],
    ["te other than trailers", [...valid, "te", "gzip"]],
    ["a control character", [...valid, "a", "b\u0001"]],
    ["a content-length that is not a number", [...valid, "content-length", "+1"]],
    ["two content-lengths", [...valid, "content-length", "1", "content-length", "2"]],
    ["a content-length and no body", [...valid, "content-length", "1"]],
    ["CONNECT with a path", [":method", "CONNECT", ":authority", "a", ":path", "/"]],
    ["the path * of a POST", [":method", "POST", ":scheme", "http", ":path", "*", ":authority", "a"]],
  ])("%s", (_, fields) => {
    const peer = new Lonely()
    const block = peer.encoder.encode(undefined, fields)
    peer.receive(Frame.encode(Type.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, 1, block))
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${ErrorCode.PROTOCOL_ERROR}`])
    expect(peer.recorder.events).toEqual([])
    peer.receive(peer.request(3))
    expect(peer.recorder.events).toEqual(["3 POST /echo", "3 end"])
  })

  it.each([
    ["shorter than it says", [data(1, 4, Flag.END_STREAM)]],
    ["longer than it says", [data(1, 6)]],
  ])("a body %s", (_, frames) => {
    const peer = new Lonely()
    peer.receive(peer.request(1, ["content-length", "5"], 0), ...frames)
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${ErrorCode.PROTOCOL_ERROR}`])
    expect(peer.recorder.events.at(-1)).toBe("1 close 1")
  })
})

describe("violations of the protocol end the connection", () => {
  const block = Buffer.of(0x82)
  it.each<[string, ReadonlyArray<Buffer>, number]>([
    ["DATA without a stream", [data(0, 1)], ErrorCode.PROTOCOL_ERROR],
    ["DATA of a stream that was not opened", [data(5, 1)], ErrorCode.PROTOCOL_ERROR],
    ["HEADERS without a stream", [Frame.encode(Type.HEADERS, 4, 0, block)], ErrorCode.PROTOCOL_ERROR],
    ["an even stream", [Frame.encode(Type.HEADERS, 4, 2, block)], ErrorCode.PROTOCOL_ERROR],
    ["a block that is not HPACK", [Frame.encode(Type.HEADERS, 4, 1, Buffer.of(0x80))], ErrorCode.COMPRESSION_ERROR],
    ["CONTINUATION alone", [Frame.encode(Type.CONTINUATION, 4, 1, block)], ErrorCode.PROTOCOL_ERROR],
    [
      "a frame within a block",
      [Frame.encode(Type.HEADERS, 0, 1, block), Frame.encode(Type.PING, 0, 0, bytes(8))],
      ErrorCode.PROTOCOL_ERROR,
    ],
    ["DATA within a block", [Frame.encode(Type.HEADERS, 0, 1, block), data(1, 1)], ErrorCode.PROTOCOL_ERROR],
    ["a ping of 7 bytes", [Frame.encode(Type.PING, 0, 0, bytes(7))], ErrorCode.FRAME_SIZE_ERROR],
    ["settings of 5 bytes", [Frame.encode(Type.SETTINGS, 0, 0, bytes(5))], ErrorCode.FRAME_SIZE_ERROR],
    ["a push", [Frame.encode(Type.PUSH_PROMISE, 4, 1, bytes(8))], ErrorCode.PROTOCOL_ERROR],
    ["a window of 2^31", [Frame.windowUpdate(0, Frame.maxWindow)], ErrorCode.FLOW_CONTROL_ERROR],
    ["a window update of 0", [Frame.windowUpdate(0, 0)], ErrorCode.PROTOCOL_ERROR],
    ["an initial window of 2^31", [Frame.settings([[4, 2 ** 31]])], ErrorCode.FLOW_CONTROL_ERROR],
    ["frames of 2^24 bytes", [Frame.settings([[5, 2 ** 24]])], ErrorCode.PROTOCOL_ERROR],
    ["a reset of a stream that was not opened", [Frame.reset(1, 8)], ErrorCode.PROTOCOL_ERROR],
    ["more padding than a frame has", [Frame.encode(Type.DATA, 8, 1, Buffer.of(9, 1))], ErrorCode.PROTOCOL_ERROR],
    ["a frame that is too long", [Frame.encode(Type.PING, 0, 0, bytes(16_385))], ErrorCode.FRAME_SIZE_ERROR],
  ])("%s", (_, frames, code) => {
    const peer = new Lonely()
    peer.receive(...frames)
    expect(peer.failure).toBe(code)
    expect(peer.replies().at(-1)).toBe(`GOAWAY ${code}`)
    peer.receive(peer.request(1))
    expect(peer.recorder.events).toEqual([])
  })

  it("no preface", () => {
    const peer = new Lonely("server", {}, false)
    peer.receive(Buffer.from("GET / HTTP/1.1\r\n"))
    expect(peer.failure).toBe(ErrorCode.PROTOCOL_ERROR)
  })

  it.each([
    ["no settings", Frame.encode(Type.PING, 0, 0, bytes(8))],
    ["an acknowledgement in place of settings", Frame.encode(Type.SETTINGS, Flag.ACK, 0, bytes(0))],
  ])("%s", (_, frame) => {
    const peer = new Lonely("server", {}, false)
    peer.receive(Frame.preface, frame)
    expect(peer.failure).toBe(ErrorCode.PROTOCOL_ERROR)
  })
})

describe("closed streams", () => {
  it("that we have reset ignore what was in flight, and its window is given back", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.reset(stream, ErrorCode.CANCEL)
    peer.sent()
    peer.receive(data(1, 16_384), data(1, 16_384))
    expect(peer.replies()).toEqual(["WINDOW_UPDATE 0 32768"])
    expect(peer.recorder.events).toEqual(["1 POST /echo", "1 close 8"])
  })

  it("of the client's accept no frames", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0), Frame.reset(1, 8), data(1, 1))
    expect(peer.replies()).toEqual([`RST_STREAM 1 ${ErrorCode.STREAM_CLOSED}`])
  })
})

it("pings and probes are acknowledged apart, in any order, and other acknowledgements mean nothing", () => {
  const peer = new Lonely()
  peer.connection.ping()
  peer.connection.probe()
  const [ping, probe] = peer.sent().map(({ type, payload }) => ({ type, payload }))
  expect([ping?.type, probe?.type]).toEqual([Type.PING, Type.PING])
  const acknowledge = (payload: Uint8Array = bytes(8)) => peer.receive(Frame.encode(Type.PING, Flag.ACK, 0, payload))
  acknowledge(probe?.payload)
  acknowledge()
  acknowledge(ping?.payload)
  expect(peer.recorder.events).toEqual(["probed", "acknowledged"])
})

describe("the end of a connection", () => {
  it("by a drain: open streams go on, further ones are ignored", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1))
    peer.connection.drain("stopping")
    peer.receive(peer.request(3))
    expect(peer.replies()).toEqual(["GOAWAY 0"])
    expect(peer.recorder.finished).toBeUndefined()
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    peer.connection.message(stream, okHead, bytes(1), okTrailers)
    expect(peer.recorder.finished).toEqual({ error: undefined })
    expect(peer.recorder.events).toEqual(["1 POST /echo", "1 end", "1 close 0"])
  })

  it("by a lost socket closes all streams", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1), peer.request(3, [], 0))
    peer.connection.lost()
    expect(peer.recorder.events.filter((event) => event.includes("close")).toSorted()).toEqual([
      "1 close 8",
      "3 close 8",
    ])
  })

  it("by a defect of a handler ends the connection, and throws", () => {
    const peer = new Lonely()
    peer.receive(peer.request(1, [], 0))
    const [stream] = peer.recorder.streams
    if (stream === undefined) throw new Error("no stream")
    stream.handler = {
      ...peer.recorder.handler(1),
      onData: () => {
        throw new Error("a defect")
      },
    }
    expect(() => peer.receive(data(1, 1))).toThrow("a defect")
    expect(peer.failure).toBe(ErrorCode.INTERNAL_ERROR)
  })
})

describe("a client", () => {
  const open = (peer: Lonely) => peer.connection.open(peer.recorder.handler(1), requestTemplate, [], true)

  it("drops heads with a status 1xx, and reads the response behind them", () => {
    const peer = new Lonely("client")
    open(peer)
    const block = (fields: ReadonlyArray<string>, flags: number) =>
      Frame.encode(Type.HEADERS, flags | Flag.END_HEADERS, 1, peer.encoder.encode(undefined, fields))
    peer.receive(block([":status", "100"], 0), block([":status", "200"], 0), data(1, 3), block(["a", "b"], 1))
    expect(peer.recorder.events).toEqual(["1 200", "1 data 3", "1 trailers", "1 end", "1 close 0"])
  })

  it("learns from GOAWAY which requests were not begun", () => {
    const peer = new Lonely("client")
    open(peer)
    peer.connection.open(peer.recorder.handler(3), requestTemplate, [], true)
    peer.receive(Frame.goaway(1, 0, "bye"))
    expect(peer.recorder.events).toEqual(["goaway 0 bye", `3 close ${ErrorCode.REFUSED_STREAM}`])
    expect(peer.connection.hasRoom).toBe(false)
    peer.receive(Frame.reset(1, ErrorCode.CANCEL))
    expect(peer.recorder.finished).toEqual({ error: undefined })
  })
})

/** An echo server and a client, whose streams have bodies of the given sizes. */
const echo = (sizes: ReadonlyArray<number>, windows: Pick<ConnectionOptions, "streamWindow" | "connectionWindow">) => {
  const replies = sizes.map(() => "")
  const errors: Array<unknown> = []
  const events = (onStream: ConnectionEvents["onStream"]): ConnectionEvents => ({
    onStream,
    onOpen: () => {},
    onSettings: () => {},
    onPing: () => {},
    onPingAcknowledged: () => {},
    onProbeAcknowledged: () => {},
    onSettingsAcknowledged: () => {},
    onGoaway: () => {},
    onStreamClosed: () => {},
    onHeld: () => {},
    onOutput: () => {},
    onFinished: (error) => errors.push(error),
  })
  const server: Connection = new Connection(
    { role: "server", ...windows, maxConcurrentStreams: 1000 },
    events((stream) => {
      server.head(stream, okHead, ["x-id", String(stream.id)], false)
      stream.handler = {
        onHeaders: () => {},
        onData: (part) => {
          if (!server.data(stream, Buffer.from(part))) server.pause(stream)
          return false
        },
        onTrailers: () => {},
        onEnd: () => server.end(stream, { template: okTrailers, fields: ["x-size", "1"] }),
        onDrain: () => server.resume(stream),
        onSent: () => {},
        onClose: () => {},
      }
    }),
    0,
  )
  const client = new Connection(
    { role: "client", ...windows, maxConcurrentStreams: 0 },
    events(() => {}),
    0,
  )
  return {
    client,
    server,
    errors,
    replies,
    send: () => {
      for (const [index, size] of sizes.entries()) {
        const text = String.fromCharCode(97 + (index % 26)).repeat(size)
        const stream = client.open(
          {
            onHeaders: (headers) => (replies[index] += `${headers[":status"]} `),
            onData: (part) => {
              replies[index] += part.toString("latin1")
              return false
            },
            onTrailers: (trailers) => (replies[index] += ` ${trailers["grpc-status"]}`),
            onEnd: () => (replies[index] += " end"),
            onDrain: () => {},
            onSent: () => {},
            onClose: (code) => (replies[index] += ` ${code}`),
          },
          new HeaderTemplate([...requestTemplate.fields, "x-body", String(index)]),
          ["x-size", String(size)],
          size === 0,
        )
        if (size > 0) client.data(stream, Buffer.from(text))
        client.end(stream)
      }
    },
  }
}

it("carries any bodies through any windows, with cuts anywhere", () => {
  const window = fc.integer({ min: 65_535, max: 200_000 })
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(100), fc.nat(100_000)), { maxLength: 8 }),
      fc.integer({ min: 100, max: 100_000 }),
      window,
      fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 20_000 })), { minLength: 1 }),
      (sizes, streamWindow, connectionWindow, cuts) => {
        const { client, server, errors, replies, send } = echo(sizes, { streamWindow, connectionWindow })
        let next = 0
        // Cuts of a few bytes only would take long for large bodies.
        const cut = () => cuts[next++ % cuts.length] ?? 1
        exchange(client, server, cut)
        send()
        exchange(client, server, cut)
        expect(errors).toEqual([])
        expect(replies).toEqual(
          sizes.map((size, index) => `200 ${String.fromCharCode(97 + (index % 26)).repeat(size)} 0 end 0`),
        )
        expect([client.size, server.size]).toEqual([0, 0])
      },
    ),
    { numRuns: 60 },
  )
})

it("carries requests and responses with a cut at every byte", () => {
  const { client, server, errors, replies, send } = echo([0, 1, 10, 2000], {
    streamWindow: 65_535,
    connectionWindow: 65_535,
  })
  exchange(client, server, () => 1)
  send()
  exchange(client, server, () => 1)
  expect(errors).toEqual([])
  expect(replies.map((reply) => reply.slice(-8))).toEqual([
    "200  0 end 0".slice(-8),
    " 0 end 0",
    " 0 end 0",
    " 0 end 0",
  ])
})
