/**
 * One HTTP request of an object store over node:http, which sends the path as it was signed and leaves the body as the
 * store has it: no decompression, no redirect. Retry.ts repeats it.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect } from "effect"
import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"
import { StoreProblem } from "./StoreProblem.ts"

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT"
  /** Scheme, host and port. */
  readonly origin: string
  /** Path and query, encoded. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Milliseconds without a byte after which the request fails. Default 30 seconds. */
  readonly timeout?: number
  /** A reply that brings fewer bytes in a period fails. Default 30 KB in 30 seconds. */
  readonly minRate?: MinRate
}

interface MinRate {
  readonly bytes: number
  /** Milliseconds. */
  readonly period: number
}

export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Bytes as they arrive; the reader determines the speed. */
  readonly body: AsyncIterable<Uint8Array>
}

/** Milliseconds without a byte. */
const defaultTimeout = 30_000

const defaultMinRate: MinRate = { bytes: 30_000, period: 30_000 }

/** Time for the whole of an answer that is read as text. */
const textTimeout = "2 minutes"

/** Maximum bytes of an answer that is read as a whole: a page of a listing, a token, an error. */
const maxTextBytes = 16 * 1024 * 1024

// Connections stay open between the requests of a load. `proxyEnv` is known to Node 24.5 and newer.
const settings = { keepAlive: true, maxSockets: 64, maxFreeSockets: 16, proxyEnv: process.env }
const agents = { "http:": new HttpAgent(settings), "https:": new HttpsAgent(settings) }

/** Sends a request and reads its reply. An interruption closes the connection. */
export const send = <A>(request: HttpRequest, read: (reply: HttpReply) => Promise<A>): Effect.Effect<A, StoreProblem> =>
  Effect.tryPromise({
    try: async (signal) => {
      const message = await begin(request, signal)
      try {
        return await read({ status: message.statusCode ?? 0, headers: message.headers, body: message })
      } finally {
        // A body that was not read to its end would occupy its connection.
        message.destroy()
      }
    },
    catch: (error) => (error instanceof StoreProblem ? error : unreachable(request, error)),
  })

/** Reads a body as text. */
export const text = async ({ body }: Pick<HttpReply, "body">): Promise<string> => {
  const pieces: Array<Uint8Array> = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > maxTextBytes) {
      const message = `the answer has more than ${maxTextBytes} bytes, which is the limit`
      throw new StoreProblem({ kind: "failed", code: "TooLarge", message })
    }
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString("utf8")
}

export interface TextReply extends Omit<HttpReply, "body"> {
  readonly text: string
}

/** Sends a request and reads its reply as text, whatever its status. */
export const sendForText = (request: HttpRequest): Effect.Effect<TextReply, StoreProblem> =>
  send(request, async (reply) => ({ status: reply.status, headers: reply.headers, text: await text(reply) })).pipe(
    Effect.timeoutOrElse({
      duration: textTimeout,
      orElse: () => Effect.fail(unreachable(request, slow(`no complete answer in ${textTimeout}`))),
    }),
  )

const begin = (
  { method, origin, path, headers = {}, body, timeout = defaultTimeout, minRate = defaultMinRate }: HttpRequest,
  signal: AbortSignal,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { protocol, hostname, port } = new URL(origin)
    const isSecure = protocol === "https:"
    const request = (isSecure ? httpsRequest : httpRequest)({
      protocol,
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port,
      path,
      method,
      headers: body === undefined ? headers : { ...headers, "content-length": Buffer.byteLength(body) },
      agent: agents[isSecure ? "https:" : "http:"],
      signal,
    })
    let reply: IncomingMessage | undefined
    const fail = (error: Error) => void (reply ?? request).destroy(error)
    request.setTimeout(timeout, () => {
      const error = new Error(`no data from ${origin} for ${timeout / 1000} seconds`)
      fail(Object.assign(error, { code: "ETIMEDOUT" }))
    })
    // The connection may have served other requests.
    let before = 0
    request.once("socket", ({ bytesRead }) => (before = bytesRead))
    const watch = setInterval(() => {
      const arrived = (request.socket?.bytesRead ?? 0) - before
      before += arrived
      const { bytes, period } = minRate
      if (arrived < bytes) fail(slow(`fewer than ${bytes} bytes in ${period / 1000} seconds`))
    }, minRate.period).unref()
    request.once("close", () => clearInterval(watch))
    request.once("response", (message) => {
      reply = message
      resolve(message)
    })
    request.on("error", reject)
    request.end(body)
  })

const slow = (message: string) => Object.assign(new Error(message), { code: "TooSlow" })

const unreachable = ({ origin }: HttpRequest, error: unknown): StoreProblem => {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "NetworkError"
  const message = errorMessage(error) || `no connection to ${origin}`
  return new StoreProblem({
    kind: "unreachable",
    code,
    message: message.includes(origin) ? message : `${message} (${origin})`,
  })
}
