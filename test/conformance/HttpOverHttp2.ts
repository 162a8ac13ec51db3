/**
 * A connection of HTTP/2 that takes the requests of HTTP, for a port that speaks both; in HTTP/2 as node has it. What
 * cannot be said in HTTP/2 it does not say otherwise: such requests are not for it.
 */
import { constants } from "node:http2"
import { Http2Connection, open } from "./Http2Connection.ts"
import type { HttpReply } from "./HttpConnection.ts"
import type { HttpRequest } from "./HttpEncoding.ts"
import { within } from "./within.ts"

/**
 * Of the connection, or of how a body is framed: HTTP/2 has its own, or none (RFC 9113, 8.2.2). Nor white space around
 * a value.
 */
const unsayable = new Set(["host", "connection", "transfer-encoding", "content-length", "expect"])

/** Whether HTTP/2 has this request; bytes are of HTTP/1.1. */
export const isSayable = (request: HttpRequest | string | Uint8Array): request is HttpRequest =>
  typeof request !== "string" &&
  !(request instanceof Uint8Array) &&
  !Object.entries(request.headers ?? {}).some(
    ([name, value]) => unsayable.has(name.toLowerCase()) || value.trim() !== value,
  )

export class HttpOverHttp2 extends Http2Connection {
  static async open(port: number): Promise<HttpOverHttp2> {
    return new HttpOverHttp2(await open(port))
  }

  request({ path, headers = {}, body, method = body === undefined ? "GET" : "POST" }: HttpRequest): Promise<HttpReply> {
    const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
    const stream = this.session.request(
      {
        ...Object.fromEntries(named),
        [constants.HTTP2_HEADER_METHOD]: method,
        [constants.HTTP2_HEADER_PATH]: path,
      },
      // Of itself it takes no body with a GET.
      { endStream: body === undefined },
    )
    const chunks: Array<Buffer> = []
    const fields = new Map<string, string>()
    let status = 0
    stream.on("error", () => {})
    stream.on("response", (head) => {
      status = head[":status"] ?? 0
      for (const [name, value] of Object.entries(head)) if (!name.startsWith(":")) fields.set(name, String(value))
    })
    stream.on("data", (chunk: Buffer) => chunks.push(chunk))
    if (body !== undefined) stream.end(body)
    const response = new Promise<HttpReply>((resolve) => {
      stream.on("close", () => resolve({ status, headers: fields, body: Buffer.concat(chunks) }))
    })
    return within(10_000, "an answer of HTTP over HTTP/2", response)
  }
}
