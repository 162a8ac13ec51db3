/** A server on a free port that answers as a test says, and keeps the requests that it got. */
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"

export interface ReceivedRequest {
  readonly method: string
  /** As it was sent: encoded, with its query. */
  readonly target: string
  /** Decoded. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface LocalReply {
  /** Default 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface LocalServer {
  readonly origin: string
  readonly requests: ReadonlyArray<ReceivedRequest>
}

export const make = (
  answer: (request: ReceivedRequest) => LocalReply,
): Effect.Effect<LocalServer, never, Scope.Scope> => {
  const requests: Array<ReceivedRequest> = []
  const server = createServer((request, response) => {
    void received(request).then((one) => {
      requests.push(one)
      try {
        const { status = 200, headers = {}, body = "" } = answer(one)
        response.writeHead(status, { "content-length": Buffer.byteLength(body), ...headers }).end(body)
      } catch (error) {
        // The rejection of an expectation fails the test, which should not wait for a reply.
        response.writeHead(400).end()
        throw error
      }
    })
  })
  return Effect.acquireRelease(
    Effect.promise(async () => {
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
    }),
    () =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      }),
  )
}

const received = async (request: IncomingMessage): Promise<ReceivedRequest> => {
  const { method = "", url: target = "", headers } = request
  const { pathname, searchParams: query } = new URL(target, "http://localhost")
  const pieces: Array<Uint8Array> = []
  for await (const piece of request) pieces.push(piece)
  const body = Buffer.concat(pieces).toString()
  return { method, target, path: decodeURIComponent(pathname), query, headers, body }
}

export const json = (document: unknown, status = 200): LocalReply => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(document),
})

/** The object, or the range of it that the request has. */
export const contents = (
  { headers: { range } }: ReceivedRequest,
  content: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): LocalReply => {
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? []
  if (start === undefined || end === undefined) return { body: content, headers }
  const body = content.subarray(Number(start), Number(end) + 1)
  return { status: 206, body, headers: { ...headers, "content-range": `bytes ${start}-${end}/${content.length}` } }
}
