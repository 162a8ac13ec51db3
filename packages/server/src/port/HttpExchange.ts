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
  /** Fields behind the body, for clients that look at them; of a body whose length was not told. */
  readonly addTrailers: (trailers: OutgoingHttpHeaders) => void
  /** False where the next one is to wait for `drain`. */
  readonly write: (chunk: Uint8Array) => boolean
  readonly end: { (): unknown; (chunk: Uint8Array): unknown; (chunk: string, encoding: "latin1"): unknown }
  readonly cork: () => void
  readonly uncork: () => void
}

/** Whether the connection, or the stream, of the response has closed. */
export const isClosed = ({ stream, destroyed }: OutgoingResponse): boolean =>
  stream === undefined ? destroyed === true : stream.destroyed || stream.closed

/**
 * Calls back once all of an answer is out of this process, so that nothing reads its memory any more; not where that cannot
 * be told: "close" also comes while a write is under way, and over HTTP/2 "finish" does too.
 */
export const onSent = (response: OutgoingResponse, sent: () => void): void => {
  if (response.stream === undefined) response.on("finish", sent)
}
