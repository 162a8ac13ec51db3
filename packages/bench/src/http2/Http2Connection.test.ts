/** Connections to node:http2 for common behaviour, and to a scripted server for rare behaviour. */
import { once } from "node:events"
import { createServer, type ServerHttp2Stream, type ServerOptions } from "node:http2"
import { type AddressInfo, createServer as createTcp } from "node:net"
import { describe, expect, it, onTestFinished } from "vitest"
import { encode, Flag, maxWindow, Setting, Type, windowUpdate } from "@nereid/http2/internal/frame/Frame"
import { type FieldList, Http2Connection } from "./Http2Connection.ts"
import { block, data, headers, ScriptedServer } from "./ScriptedServer.fixture.ts"

const fields: FieldList = [":method", "POST", ":scheme", "http", ":path", "/echo", ":authority", "localhost"]

const serve = async (
  options: ServerOptions,
  onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void,
): Promise<{ readonly port: number }> => {
  const server = createServer(options)
  server.on("stream", onStream)
  server.on("sessionError", () => {})
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port }
}

const open = async (port: number): Promise<Http2Connection> => {
  const connection = await Http2Connection.open({ host: "127.0.0.1", port }, fields)
  onTestFinished(() => connection.close())
  return connection
}

interface Outcome {
  readonly headers: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly body: Buffer
  readonly aborted?: readonly [why: string, unseen: boolean]
}

const infer = (connection: Http2Connection, body: ReadonlyArray<Buffer> = [], own?: FieldList): Promise<Outcome> => {
  const blocks: Array<Record<string, unknown>> = []
  const parts: Array<Buffer> = []
  return new Promise((resolve) => {
    const outcome = () => ({ headers: blocks, body: Buffer.concat(parts) })
    connection.request(
      {
        onHeaders: (block, last) => {
          blocks.push({ ...block })
          if (last) resolve(outcome())
        },
        onData: (part, last) => {
          parts.push(Buffer.from(part))
          if (last) resolve(outcome())
        },
        onAbort: (reason, unseen) => resolve({ ...outcome(), aborted: [reason, unseen] }),
      },
      body,
      true,
      own,
    )
  })
}

const echo = (stream: ServerHttp2Stream) => {
  stream.respond({ ":status": 200 }, { waitForTrailers: true })
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-end": "yes" }))
  stream.on("error", () => {})
  stream.pipe(stream)
}

const bytes = (length: number) => Buffer.from(Uint8Array.from({ length }, (_, index) => index * 7 + (index >> 8)))

describe("against node:http2", () => {
  it.each<readonly [string, { readonly initialWindowSize?: number; readonly maxFrameSize?: number }]>([
    ["usual windows", {}],
    ["small windows and large frames", { initialWindowSize: 1000, maxFrameSize: 2 ** 20 }],
    ["no window at first", { initialWindowSize: 0 }],
  ])("sends and gets 3 MB many times at once: %s", async (_, settings) => {
    const { port } = await serve({ settings }, (stream) => {
      // Also applies to the streams that wait for it.
      if (settings.initialWindowSize === 0) stream.session?.settings({ initialWindowSize: 70_000 })
      echo(stream)
    })
    const connection = await open(port)
    const body = bytes(3_000_000)
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, () => infer(connection, [body.subarray(0, 10), body.subarray(10)])),
    )
    for (const outcome of outcomes) {
      expect(outcome.body.equals(body)).toBe(true)
      expect(outcome.headers).toMatchObject([{ ":status": "200" }, { "x-end": "yes" }])
    }
  })

  it("keeps to the limit of concurrent streams", async () => {
    let open_ = 0
    let max = 0
    const { port } = await serve({ settings: { maxConcurrentStreams: 3 } }, (stream) => {
      max = Math.max(max, ++open_)
      stream.on("close", () => open_--)
      echo(stream)
    })
    const connection = await open(port)
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, index) => infer(connection, [bytes(index + 1)])))
    expect(outcomes.map(({ body }) => body.length)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    expect(max).toBe(3)
  })

  it.each([["a header table"], ["no header table"]])("reads headers of all kinds, with %s", async (table) => {
    const settings = table === "a header table" ? {} : { headerTableSize: 0 }
    const visible = Array.from({ length: 95 }, (_, index) => String.fromCharCode(index + 32)).join("")
    const { port } = await serve({ settings }, (stream, { "x-own": own }) => {
      // Some literal and some in Huffman code, some to be remembered, 20 KB in a block.
      const many = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-${index}`, `${index}`.repeat(500)]))
      stream.respond({
        ":status": 200,
        "x-own": String(own),
        "x-visible": `a${visible}a`,
        "x-latin": "\u00e9\u00ff",
        ...many,
      })
      stream.end()
    })
    const connection = await open(port)
    for (const own of ["first", "second", "third"]) {
      const {
        headers: [head],
      } = await infer(connection, [], [...fields, "x-own", own])
      expect(head).toMatchObject({
        "x-own": own,
        "x-visible": `a${visible}a`,
        "x-latin": "\u00e9\u00ff",
        "x-7": "7".repeat(500),
      })
    }
    for (let count = 0; count < 3; count++) {
      expect((await infer(connection)).headers[0]).toMatchObject({ "x-own": "undefined", "x-19": "19".repeat(500) })
    }
  })

  it("distinguishes a reset stream from the others", async () => {
    const { port } = await serve({}, (stream, { "x-own": own }) => {
      if (own === "bad") stream.close(2)
      else echo(stream)
      stream.on("error", () => {})
    })
    const connection = await open(port)
    const [bad, good] = await Promise.all([
      infer(connection, [bytes(100_000)], [...fields, "x-own", "bad"]),
      infer(connection, [bytes(10)]),
    ])
    expect(bad.aborted).toEqual(["the server reset the stream: INTERNAL_ERROR", false])
    expect(good.body).toHaveLength(10)
    expect(connection.accepts).toBe(true)
  })

  it("takes a reply that comes before the request is all sent", async () => {
    const { port } = await serve({ settings: { initialWindowSize: 100 } }, (stream) => {
      stream.on("error", () => {})
      stream.respond({ ":status": 413 }, { endStream: true })
    })
    const connection = await open(port)
    const { headers: blocks } = await infer(connection, [bytes(1_000_000)])
    expect(blocks).toMatchObject([{ ":status": "413" }])
    expect(await infer(connection, [bytes(10)])).toMatchObject({ headers: [{ ":status": "413" }] })
  })

  it("finishes open streams after GOAWAY, and starts no others", async () => {
    const { port } = await serve({}, (stream) => {
      stream.session?.goaway(0)
      echo(stream)
    })
    const connection = await open(port)
    expect((await infer(connection, [bytes(10)])).body).toHaveLength(10)
    expect(connection.accepts).toBe(false)
    expect((await infer(connection)).aborted?.[1]).toBe(true)
  })

  it("a lost connection ends open streams", async () => {
    const { port } = await serve({}, (stream) => {
      stream.on("error", () => {})
      stream.session?.destroy()
    })
    const connection = await open(port)
    const { aborted } = await infer(connection, [bytes(10)])
    expect(aborted).toEqual([expect.stringMatching(/server (closed|ended) the connection/), false])
    expect(connection.accepts).toBe(false)
  })
})

const ok: FieldList = [":status", "200"]

describe("against a server that", () => {
  it("pads, gives priorities, continues header blocks and announces", async () => {
    const server = await ScriptedServer.start()
    const connection = await open(server.port)
    const outcome = infer(connection)
    await server.received((frames) => frames.some(({ type }) => type === Type.HEADERS))
    const long = block([...ok, "x-long", "x".repeat(300)])
    const padded = Buffer.concat([Buffer.of(3, 0, 0, 0, 0, 9), long.subarray(0, 20), Buffer.alloc(3)])
    server.write(
      headers(1, [":status", "103"]),
      encode(Type.HEADERS, Flag.PADDED | Flag.PRIORITY, 1, padded),
      encode(Type.CONTINUATION, 0, 1, long.subarray(20, 100)),
      encode(Type.CONTINUATION, Flag.END_HEADERS, 1, long.subarray(100)),
      encode(Type.DATA, Flag.PADDED, 1, Buffer.from("\u0002ab\0\0")),
      // A frame of an extension.
      encode(99, 0, 1, Buffer.from("?")),
      encode(Type.DATA, Flag.PADDED | Flag.END_STREAM, 1, Buffer.from("\u0001\0")),
    )
    expect(await outcome).toEqual({
      headers: [{ ":status": "200", "x-long": "x".repeat(300) }],
      body: Buffer.from("ab"),
    })
  })

  it("sends pings, and changes its settings", async () => {
    const server = await ScriptedServer.start()
    const connection = await open(server.port)
    server.write(encode(Type.PING, 0, 0, Buffer.from("12345678")))
    await server.received((frames) => frames.some(({ type, flags }) => type === Type.PING && flags === Flag.ACK))
    expect(server.frames.find(({ type }) => type === Type.PING)?.payload.toString()).toBe("12345678")
    expect(server.frames.filter(({ type, flags }) => type === Type.SETTINGS && flags === Flag.ACK)).toHaveLength(1)
    expect(connection.accepts).toBe(true)
  })

  it("opens the connection's window a little at a time", async () => {
    const server = await ScriptedServer.start([[Setting.INITIAL_WINDOW_SIZE, maxWindow]])
    const connection = await open(server.port)
    const outcomes = [infer(connection, [bytes(65_000)]), infer(connection, [bytes(1000)])]
    const received = () =>
      server.frames.filter(({ type }) => type === Type.DATA).reduce((sum, { payload }) => sum + payload.length, 0)
    await server.received(() => received() === 65_535)
    server.write(windowUpdate(0, 5))
    await server.received(() => received() === 65_540)
    server.write(windowUpdate(0, 1000))
    await server.received(() => received() === 66_000)
    server.write(headers(1, ok, true), headers(3, ok, true))
    expect(await Promise.all(outcomes)).toHaveLength(2)
  })

  it("goes away before it has begun with all", async () => {
    const server = await ScriptedServer.start([[Setting.MAX_CONCURRENT_STREAMS, 2]])
    const connection = await open(server.port)
    const outcomes = [infer(connection), infer(connection), infer(connection)]
    await server.received((frames) => frames.some(({ stream }) => stream === 3))
    server.write(encode(Type.GOAWAY, 0, 0, Buffer.from("0000000100000000", "hex")), headers(1, ok, true))
    const [first, second, third] = await Promise.all(outcomes)
    expect(first?.headers).toHaveLength(1)
    expect(second?.aborted).toEqual(["the server ended the connection: NO_ERROR", true])
    expect(third?.aborted?.[1]).toBe(true)
  })

  it("goes away in anger", async () => {
    const server = await ScriptedServer.start()
    const connection = await open(server.port)
    const outcome = infer(connection)
    await server.received((frames) => frames.some(({ type }) => type === Type.HEADERS))
    server.write(
      encode(Type.GOAWAY, 0, 0, Buffer.concat([Buffer.from("000000000000000b", "hex"), Buffer.from("calm")])),
    )
    expect((await outcome).aborted).toEqual(["the server ended the connection: ENHANCE_YOUR_CALM, calm", false])
  })

  it.each([
    ["pushes", encode(Type.PUSH_PROMISE, Flag.END_HEADERS, 1, Buffer.alloc(4))],
    ["interrupts a header block", Buffer.concat([encode(Type.HEADERS, 0, 1, Buffer.of()), data(3, "x"), data(3, "x")])],
    ["continues nothing", encode(Type.CONTINUATION, Flag.END_HEADERS, 1, Buffer.of())],
    ["has an unreadable header block", encode(Type.HEADERS, Flag.END_HEADERS, 1, Buffer.of(0xff))],
    ["sends a frame for a stream that was never opened", data(77, "lost")],
    ["cuts a frame short", encode(Type.WINDOW_UPDATE, 0, 0, Buffer.of(1))],
    ["speaks HTTP/1.1", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
    [
      "never ends a header block",
      Buffer.concat([
        encode(Type.HEADERS, 0, 1, Buffer.of()),
        ...Array.from({ length: 5 }, () => encode(Type.CONTINUATION, 0, 1, Buffer.alloc(16_000))),
      ]),
    ],
  ])("breaks the protocol: %s", async (_, frames) => {
    const server = await ScriptedServer.start()
    const connection = await open(server.port)
    const outcome = infer(connection)
    await server.received((all) => all.some(({ type }) => type === Type.HEADERS))
    server.write(frames)
    expect((await outcome).aborted).toEqual([expect.stringMatching(/^the server violated the protocol: /), false])
  })

  it.each([
    ["is none", undefined, /^cannot connect to 127\.0\.0\.1:1: connect ECONNREFUSED/],
    [
      "speaks HTTP/1.1 only",
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      / does not speak HTTP\/2: the server violated the protocol/,
    ],
    ["closes at once", "", / does not speak HTTP\/2: the server closed the connection$/],
  ])("%s", async (_, response, message) => {
    const listener = createTcp((socket) => socket.on("error", () => {}).on("data", () => socket.end(response ?? "")))
    listener.listen(0, "127.0.0.1")
    await once(listener, "listening")
    onTestFinished(() => void listener.close())
    const port = response === undefined ? 1 : (listener.address() as AddressInfo).port
    await expect(open(port)).rejects.toThrow(message)
  })
})
