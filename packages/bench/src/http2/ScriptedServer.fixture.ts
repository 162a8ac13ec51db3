/** HTTP/2 server for tests: sends the given frames, valid or not, and records the frames that it receives. */
import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { onTestFinished } from "vitest"
import { encode, Flag, preface, settings, Type } from "@nereid/http2/internal/frame/Frame"
import { FrameReader } from "@nereid/http2/internal/frame/FrameReader"
import { HeaderEncoder } from "@nereid/http2/internal/hpack/HeaderEncoder"
import type { FieldList } from "./Http2Connection.ts"

export interface Received {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

export class ScriptedServer {
  readonly port: number
  readonly frames: Array<Received> = []
  #socket: Socket | undefined
  #received = Promise.withResolvers<void>()

  private constructor(port: number) {
    this.port = port
  }

  /** `first`: the settings that it begins with. */
  static async start(first: Parameters<typeof settings>[0] = []): Promise<ScriptedServer> {
    const listener = createServer()
    listener.listen(0, "127.0.0.1")
    await once(listener, "listening")
    const server = new ScriptedServer((listener.address() as AddressInfo).port)
    listener.on("connection", (socket) => {
      server.#socket = socket
      socket.on("error", () => {})
      socket.write(settings(first))
      const note = (type: number, flags: number, stream: number, payload: Buffer) => {
        server.frames.push({ type, flags, stream, payload: Buffer.from(payload) })
        server.#received.resolve()
        server.#received = Promise.withResolvers()
      }
      let frame = { flags: 0, stream: 0 }
      const reader = new FrameReader({
        onDataHead: (stream, flags) => (frame = { flags, stream }),
        onDataPart: (part, isLast) => note(Type.DATA, isLast ? frame.flags : 0, frame.stream, part),
        onFrame: note,
      })
      let rest = Buffer.alloc(0)
      let started = false
      socket.on("data", (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk])
        if (!started && rest.length < preface.length) return
        reader.read(started ? rest : rest.subarray(preface.length))
        started = true
        rest = Buffer.alloc(0)
      })
    })
    onTestFinished(() => {
      server.#socket?.destroy()
      listener.close()
    })
    return server
  }

  /** Waits for frames that satisfy a condition. */
  async received(holds: (frames: ReadonlyArray<Received>) => boolean): Promise<void> {
    while (!holds(this.frames)) await this.#received.promise
  }

  write(...frames: ReadonlyArray<Buffer>): void {
    this.#socket?.write(Buffer.concat(frames))
  }

  end(): void {
    this.#socket?.end()
  }
}

export const headers = (stream: number, fields: FieldList, last = false): Buffer =>
  encode(Type.HEADERS, Flag.END_HEADERS | (last ? Flag.END_STREAM : 0), stream, block(fields))

export const data = (stream: number, text: string, last = false): Buffer =>
  encode(Type.DATA, last ? Flag.END_STREAM : 0, stream, Buffer.from(text))

/** A header block that any connection can read at any time. */
export const block = (fields: FieldList): Buffer => Buffer.from(new HeaderEncoder().encode(undefined, fields))
