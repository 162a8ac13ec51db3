/**
 * A persistent connection to the HTTP port, with pipelining. It writes arbitrary bytes, and checks replies strictly: a
 * reply that is not valid HTTP/1.1 is an error.
 */
import { connect, type Socket } from "node:net"
import type { HttpRequest } from "./HttpEncoding.ts"
import { within } from "./within.ts"

export interface HttpReply {
  readonly status: number
  /** By names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

interface Waiting {
  readonly resolve: (reply: HttpReply) => void
  readonly fail: (error: Error) => void
  /** An answer to HEAD announces a body that it has not. */
  readonly bodiless: boolean
}

export class HttpConnection {
  readonly #socket: Socket
  readonly #waiting: Array<Waiting> = []
  #received: Buffer = Buffer.alloc(0)
  /** Set when the server has closed its side, or the connection is gone. */
  #ended = false
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on("data", (chunk: Buffer) => this.#onData(chunk))
    socket.on("error", () => {})
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#ended = true
        this.#onEnd()
        resolve()
      })
    })
    socket.on("end", () => {
      this.#ended = true
      this.#onEnd()
    })
  }

  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(new HttpConnection(socket)))
      socket.once("error", reject)
    })
  }

  /** Whether another request can be sent. */
  get isOpen(): boolean {
    return !this.#ended
  }

  request(request: HttpRequest): Promise<HttpReply> {
    return this.send(bytesOf(request), request.method === "HEAD")
  }

  /** Sends raw bytes and expects one reply. */
  send(bytes: string | Uint8Array, bodiless = false): Promise<HttpReply> {
    const reply = new Promise<HttpReply>((resolve, fail) => this.#waiting.push({ resolve, fail, bodiless }))
    this.write(bytes)
    return within(10_000, "an answer over HTTP", reply)
  }

  /** Sends raw bytes without a separate reply. */
  write(bytes: string | Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** Closes our side: nothing more is sent. */
  end(): void {
    this.#socket.end()
  }

  close(): void {
    this.#socket.destroy()
  }

  #onData(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    try {
      while (this.#received.length > 0 && this.#takeReply());
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      this.close()
    }
  }

  #onEnd(): void {
    this.#fail(new Error(`The connection ended before the answer, ${this.#received.length} bytes of which had come`))
  }

  #fail(error: Error): void {
    for (const { fail } of this.#waiting.splice(0)) fail(error)
  }

  /** Whether a whole answer was there. */
  #takeReply(): boolean {
    const head = this.#received.indexOf("\r\n\r\n")
    if (head < 0) return false
    const [statusLine = "", ...lines] = this.#received.toString("latin1", 0, head).split("\r\n")
    const status = /^HTTP\/1\.1 ([1-5][0-9][0-9]) [ -~]*$/.exec(statusLine)?.[1]
    if (status === undefined) throw new Error(`Not a status line: ${JSON.stringify(statusLine)}`)
    if (status === "100") {
      this.#received = this.#received.subarray(head + 4)
      return true
    }
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name, value] = /^([!#-'*+.^-z|~0-9A-Z-]+): ?(.*)$/.exec(line) ?? []
      if (name === undefined || value === undefined) throw new Error(`Not a header: ${JSON.stringify(line)}`)
      if (headers.has(name.toLowerCase())) throw new Error(`The header ${name} stands twice`)
      headers.set(name.toLowerCase(), value)
    }
    const [waiting] = this.#waiting
    if (waiting === undefined) throw new Error(`A response without a request: ${statusLine}`)
    const body = this.#takeBody(head + 4, headers, waiting.bodiless || status === "204")
    if (body === undefined) return false
    this.#waiting.shift()
    waiting.resolve({ status: Number(status), headers, body })
    return true
  }

  #takeBody(from: number, headers: ReadonlyMap<string, string>, bodiless: boolean): Buffer | undefined {
    if (headers.get("transfer-encoding") === "chunked") return this.#takeChunks(from)
    const announced = headers.get("content-length") ?? (bodiless ? "0" : undefined)
    if (announced === undefined || !/^[0-9]+$/.test(announced)) throw new Error(`An answer of length ${announced}`)
    const end = from + (bodiless ? 0 : Number(announced))
    if (this.#received.length < end) return undefined
    const body = this.#received.subarray(from, end)
    this.#received = this.#received.subarray(end)
    return body
  }

  #takeChunks(from: number): Buffer | undefined {
    const chunks: Array<Buffer> = []
    let position = from
    for (;;) {
      const line = this.#received.indexOf("\r\n", position)
      if (line < 0) return undefined
      const text = this.#received.toString("latin1", position, line)
      if (!/^[0-9a-fA-F]+$/.test(text)) throw new Error(`Not a chunk's length: ${JSON.stringify(text)}`)
      const length = Number.parseInt(text, 16)
      const end = line + 2 + length
      if (this.#received.length < end + 2) return undefined
      chunks.push(this.#received.subarray(line + 2, end))
      position = end + 2
      if (length > 0) continue
      this.#received = this.#received.subarray(position)
      return Buffer.concat(chunks)
    }
  }
}

/** A request as it stands on the wire. */
export const bytesOf = ({
  path,
  headers = {},
  body,
  method = body === undefined ? "GET" : "POST",
}: HttpRequest): Uint8Array => {
  const content = body === undefined ? Buffer.alloc(0) : Buffer.from(body)
  const names = Object.keys(headers).map((name) => name.toLowerCase())
  const announced = names.includes("content-length") || names.includes("transfer-encoding")
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...(names.includes("host") ? [] : ["Host: conformance"]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined || announced ? [] : [`Content-Length: ${content.length}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), content])
}
