/**
 * HTTP request and response over HTTP/1.1 or HTTP/2: the common part of Node's types, and their differences.
 * HttpListener.ts receives requests, HttpRoutes.ts has the routes.
 */
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http"
import type { Http2ServerRequest, ServerHttp2Stream } from "node:http2"

export type IncomingRequest = IncomingMessage | Http2ServerRequest

/** The methods of node's ServerResponse and of its Http2ServerResponse that they have in common. */
export interface OutgoingResponse {
  /** Over HTTP/2 only. */
  readonly stream?: ServerHttp2Stream
  /** Over HTTP/1.1 only. */
  readonly destroyed?: boolean
  statusCode: number
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly on: (event: "close" | "drain" | "finish", listener: () => void) => OutgoingResponse
  readonly off: (event: "close" | "drain", listener: () => void) => OutgoingResponse
  readonly setHeader: (name: string, value: string) => unknown
  readonly writeContinue: () => void
  readonly writeHead: (status: number, headers: OutgoingHttpHeaders) => unknown
  /** Adds trailers, for clients that read them; only for a body without a known length. */
  readonly addTrailers: (trailers: OutgoingHttpHeaders) => void
  /** False where the next one is to wait for `drain`. A string must be ASCII: "drain" may not come behind others. */
  readonly write: (chunk: string | Uint8Array) => boolean
  readonly end: {
    (): unknown
    (chunk: string | Uint8Array): unknown
    (chunk: string, encoding: "latin1" | "utf8"): unknown
  }
  readonly destroy: () => unknown
  readonly cork: () => void
  readonly uncork: () => void
}

/** Host and port that the client addresses, as it sent them; undefined only over HTTP/1.0. */
export const authorityOf = (request: IncomingRequest): string | undefined =>
  "authority" in request ? request.authority : request.headers.host

/** The connection of a request: a socket, or an HTTP/2 session; undefined if it has closed. */
export const connectionOf = (request: IncomingRequest): object | undefined =>
  "stream" in request ? request.stream.session : request.socket

/** Ends a response that has begun, over HTTP/1.1 with its connection. */
export const cutOff = (response: OutgoingResponse): void => {
  if (response.stream === undefined) response.destroy()
  else response.stream.destroy()
}

/** Whether the connection, or the stream, of the response has closed. */
export const isClosed = ({ stream, destroyed }: OutgoingResponse): boolean =>
  stream === undefined ? destroyed === true : stream.destroyed || stream.closed

/**
 * Calls `sent` once the whole response has left the process, so that its memory is no longer read. Not called if that
 * is unknown: "close", and "finish" over HTTP/2, can occur during a write.
 */
export const onSent = (response: OutgoingResponse, sent: () => void): void => {
  if (response.stream === undefined) response.on("finish", sent)
}
