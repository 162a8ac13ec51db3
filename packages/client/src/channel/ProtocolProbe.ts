/**
 * Finds out which protocol a server speaks, for a URL without a scheme. The probe sends the preface of HTTP/2. A gRPC
 * server answers with a frame, and a server of HTTP/1.1 with an error in HTTP/1.1, or not at all: a second connection
 * then sends a request in HTTP/1.1.
 */
import { connect } from "node:net"
import { Unavailable } from "@nereid/core/Errors"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { Effect } from "effect"
import type { ClientSettings } from "./ClientOptions.ts"
import { connectionLost } from "./ConnectionLost.ts"

/** The preface, and an empty SETTINGS frame. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", "latin1")

/** Bytes that identify an answer: the header of a frame, whose fourth byte is its type. */
const enough = 9

const settingsFrame = 4

const alertRecord = 0x15

type Answer = "http2" | "http1" | "tls" | "none" | "unknown"

/**
 * Returns the settings with a protocol, unless they have one. Fails with Unavailable if the server cannot be reached,
 * or if neither protocol is found within the connect timeout.
 */
export const detect = (settings: ClientSettings): Effect.Effect<ClientSettings, Unavailable> =>
  settings.endpoint.protocol === undefined
    ? Effect.map(probe(settings), (protocol) => ({ ...settings, endpoint: { ...settings.endpoint, protocol } }))
    : Effect.succeed(settings)

const probe = ({ endpoint, connectTimeout }: ClientSettings): Effect.Effect<ServerUrl.Protocol, Unavailable> => {
  const address = ServerUrl.address(endpoint)
  const refuse = (problem: string, write: string) =>
    new Unavailable({ message: `cannot tell which protocol ${address} speaks: ${problem}; write ${write}` })
  const plain = `grpc://${address} or http://${address}`
  const request = Buffer.from(`GET /v2/health/live HTTP/1.1\r\nhost: ${address}\r\nconnection: close\r\n\r\n`)
  const answer = Effect.flatMap(ask(endpoint, preface), (first) =>
    first === "none" ? ask(endpoint, request) : Effect.succeed(first),
  )
  return answer.pipe(
    Effect.mapError((error) => new Unavailable({ message: connectionLost(endpoint, false, error) })),
    Effect.timeoutOrElse({
      duration: connectTimeout,
      orElse: () => Effect.fail(refuse(`no answer within ${connectTimeout} ms`, plain)),
    }),
    Effect.flatMap((found): Effect.Effect<ServerUrl.Protocol, Unavailable> => {
      switch (found) {
        case "http2":
          return Effect.succeed("grpc")
        case "http1":
          return Effect.succeed("http")
        case "tls":
          return Effect.fail(refuse("it expects TLS", `grpcs://${address} or https://${address}`))
        case "none":
          return Effect.fail(refuse("it closed the connection", plain))
        case "unknown":
          return Effect.fail(refuse("its answer is neither HTTP/2 nor HTTP/1.1", plain))
      }
    }),
  )
}

/** Sends bytes on a new connection, and identifies the beginning of the answer. */
const ask = ({ host, port }: ServerUrl.ServerUrl, question: Uint8Array): Effect.Effect<Answer, Error> =>
  Effect.callback((resume) => {
    const socket = connect({ host, port, noDelay: true })
    let received: Buffer = Buffer.alloc(0)
    let isConnected = false
    const end = (outcome: Effect.Effect<Answer, Error>) => {
      socket.destroy()
      resume(outcome)
    }
    socket.on("connect", () => {
      isConnected = true
      socket.write(question)
    })
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (received.length >= enough) end(Effect.succeed(identify(received)))
    })
    // A server may reset the connection for bytes that it does not know.
    socket.on("error", (error) => end(isConnected ? Effect.succeed(identify(received)) : Effect.fail(error)))
    socket.on("close", () => end(Effect.succeed(identify(received))))
    return Effect.sync(() => void socket.destroy())
  })

const identify = (bytes: Buffer): Answer => {
  if (bytes.length === 0) return "none"
  if (bytes[0] === alertRecord && bytes[1] === 3) return "tls"
  if (bytes.length >= enough && bytes[3] === settingsFrame && bytes.readUIntBE(0, 3) % 6 === 0) return "http2"
  return bytes.toString("latin1").startsWith("HTTP/1.") ? "http1" : "unknown"
}
