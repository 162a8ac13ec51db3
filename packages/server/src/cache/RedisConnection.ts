/**
 * One connection to a Redis server, which connects again after a failure. Commands are sent while it is ready, and not
 * kept for later: a cache that is gone costs its callers no time.
 *
 *   connecting ─► AUTH, SELECT, PING answered ─► ready ──┐
 *       ▲                                                │ closed, an overdue reply, or not the protocol
 *       └────────────── after a delay ◄── waiting ◄──────┘
 */
import { connect as connectTcp, type Socket } from "node:net"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { RedisReplies, type Reply } from "./RedisReplies.ts"

export interface RedisTls {
  /** PEM. Default: the system's certificates. */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly serverName?: string
}

export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly user?: string
  readonly password?: string
  /** Number of the database. Default 0. */
  readonly database?: number
  /** Default: no TLS. */
  readonly tls?: RedisTls
}

export interface RedisConnectionOptions {
  readonly address: RedisAddress
  /** Time for a connection to become ready, in milliseconds. */
  readonly connectTimeout: number
  /** Maximum size of a value, in bytes. */
  readonly maxValueBytes: number
  /** Maximum bytes that wait to be sent. */
  readonly maxUnsentBytes: number
  readonly onReady: () => void
  /** Called once per failure, with its reason. */
  readonly onFailure: (reason: string) => void
}

/** Commands without a reply on one connection. */
const maxPending = 4096

/** Delays before the next attempt, in milliseconds; each failure doubles the delay. */
const delays = { first: 500, longest: 10_000 }

type OnReply = (reply: Reply | undefined) => void

export class RedisConnection {
  readonly #options: RedisConnectionOptions
  #socket: Socket | undefined
  #isReady = false
  #isClosed = false
  #pending: Array<OnReply> = []
  #delay = delays.first
  #timer: NodeJS.Timeout | undefined

  constructor(options: RedisConnectionOptions) {
    this.#options = options
    this.#connect()
  }

  /** Sends a command, or drops it and returns false. `onReply` is called later; with undefined after a failure. */
  send(parts: ReadonlyArray<string | Uint8Array>, onReply: OnReply): boolean {
    const socket = this.#socket
    if (!this.#isReady || socket === undefined || this.#pending.length >= maxPending) return false
    if (socket.writableLength > this.#options.maxUnsentBytes) return false
    this.#write(socket, parts, onReply)
    return true
  }

  /** The server does not answer in time: calls back all commands, and connects again after a delay. */
  fail(reason: string): void {
    const socket = this.#socket
    if (socket !== undefined) this.#end(socket, reason)
  }

  /** A reply has come in time, so that the next failure is the first one. */
  worked(): void {
    this.#delay = delays.first
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.fail("closed")
  }

  #connect(): void {
    const { address, connectTimeout, maxValueBytes, onReady } = this.#options
    const { host, port, user, password, database = 0, tls } = address
    const socket =
      tls === undefined
        ? connectTcp({ host, port })
        : process.getBuiltinModule("node:tls").connect({
            host,
            port,
            ...(tls.ca === undefined ? {} : { ca: tls.ca }),
            ...(tls.cert === undefined ? {} : { cert: tls.cert }),
            ...(tls.key === undefined ? {} : { key: tls.key }),
            servername: tls.serverName ?? host,
          })
    this.#socket = socket
    socket.setNoDelay(true)
    socket.unref()
    const end = (reason: string) => this.#end(socket, reason)
    this.#timer = setTimeout(() => end(`not connected within ${connectTimeout} ms`), connectTimeout).unref()
    const replies = new RedisReplies(maxValueBytes, (reply) => this.#pending.shift()?.(reply))
    socket.on("data", (chunk) => {
      try {
        replies.push(Buffer.from(chunk))
      } catch (error) {
        end(errorMessage(error))
      }
    })
    socket.on("error", (error) => end(error.message))
    socket.on("close", () => end("the connection was closed"))
    const greeting: ReadonlyArray<ReadonlyArray<string>> = [
      ...(password === undefined ? [] : [user === undefined ? ["AUTH", password] : ["AUTH", user, password]]),
      ...(database === 0 ? [] : [["SELECT", String(database)]]),
      ["PING"],
    ]
    for (const [index, command] of greeting.entries()) {
      this.#write(socket, command, (reply) => {
        if (reply === undefined || this.#socket !== socket) return
        if (reply.kind === "error") return end(reply.text)
        if (index < greeting.length - 1) return
        clearTimeout(this.#timer)
        this.#isReady = true
        onReady()
      })
    }
  }

  #write(socket: Socket, parts: ReadonlyArray<string | Uint8Array>, onReply: OnReply): void {
    this.#pending.push(onReply)
    socket.cork()
    socket.write(`*${parts.length}\r\n`)
    for (const part of parts) {
      socket.write(`$${Buffer.byteLength(part)}\r\n`)
      socket.write(part)
      socket.write("\r\n")
    }
    socket.uncork()
  }

  /** Does nothing for a socket that has ended before. */
  #end(socket: Socket, reason: string): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    this.#isReady = false
    clearTimeout(this.#timer)
    socket.destroy()
    const pending = this.#pending
    this.#pending = []
    if (!this.#isClosed) {
      this.#timer = setTimeout(() => this.#connect(), this.#delay).unref()
      this.#delay = Math.min(this.#delay * 2, delays.longest)
      this.#options.onFailure(reason)
    }
    for (const onReply of pending) onReply(undefined)
  }
}
