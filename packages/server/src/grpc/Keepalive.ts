/**
 * HTTP/2 connections that are dead, that ping too much or that are old, as gRPC's own servers treat them. At most two
 * timers a connection, none for a call. Not here: how long a call may take, and TCP's own keepalive.
 *
 *   nothing received for `time`, with a call in flight ─► ping ─► no reply within `timeout` ─► close
 *   a ping within `minReceiveInterval` of the previous one, without data in between ─► strike
 *     └─ more strikes than `maxPingStrikes` ─► GOAWAY ENHANCE_YOUR_CALM "too_many_pings", close
 *   `maxConnectionAge` ± 10 % ─► GOAWAY, calls in flight finish ─► close, at the latest after
 *     `maxConnectionAgeGrace`
 */
import { Duration, Effect } from "effect"
import type { Http2Session } from "./Http2Session.ts"
import type { LimitReports } from "../limit/LimitReports.ts"
import { ServeError } from "../error/ServeError.ts"
import * as Timer from "../port/Timer.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Keepalive options of gRPC connections. The defaults are those of gRPC and Triton. */
export interface Keepalive {
  /**
   * Time without received data after which the server sends a ping. Default 2 hours. The check runs at this interval,
   * so a ping may be as late as twice the time.
   */
  readonly time?: Duration.Input
  /** Maximum time for the acknowledgement of a ping. Default 20 seconds. */
  readonly timeout?: Duration.Input
  /** Also pings connections without calls, and lets their clients ping as often as with calls. Default false. */
  readonly permitWithoutCalls?: boolean
  /** Maximum pings that the server sends without sending data in between; 0 for no limit. Default 2. */
  readonly maxPingsWithoutData?: number
  /** Minimum time between two pings of a client if the server sends no data in between. Default 5 minutes. */
  readonly minReceiveInterval?: Duration.Input
  /** Maximum pings of a client within `minReceiveInterval`; 0 for no limit. Default 2. */
  readonly maxPingStrikes?: number
  /** Maximum age of a connection, varied by 10 % so that connections do not end together. Default: no limit. */
  readonly maxConnectionAge?: Duration.Input
  /** Maximum time for the calls of a connection above `maxConnectionAge`. Default: no limit. */
  readonly maxConnectionAgeGrace?: Duration.Input
}

/** Keepalive options with defaults, in milliseconds. */
export type KeepaliveSettings = { readonly [K in keyof Keepalive]-?: K extends "permitWithoutCalls" ? boolean : number }

/** Fails with a ServeError if a number is invalid. */
export const settings = Effect.fnUntraced(function* (
  options: Keepalive = {},
): Effect.fn.Return<KeepaliveSettings, ServeError> {
  const all = yield* Effect.try({
    try: (): KeepaliveSettings => ({
      time: millis(options.time ?? "2 hours"),
      timeout: millis(options.timeout ?? "20 seconds"),
      permitWithoutCalls: options.permitWithoutCalls ?? false,
      maxPingsWithoutData: options.maxPingsWithoutData ?? 2,
      minReceiveInterval: millis(options.minReceiveInterval ?? "5 minutes"),
      maxPingStrikes: options.maxPingStrikes ?? 2,
      maxConnectionAge: millis(options.maxConnectionAge ?? "Infinity"),
      maxConnectionAgeGrace: millis(options.maxConnectionAgeGrace ?? "Infinity"),
    }),
    catch: (error) => new ServeError({ message: `keepalive: ${errorMessage(error)}` }),
  })
  for (const [name, value] of Object.entries(all)) {
    const minimum = positive.has(name) ? 1 : 0
    if (typeof value === "boolean" || value >= minimum) continue
    return yield* new ServeError({ message: `keepalive.${name} is ${value}, expected at least ${minimum}` })
  }
  return all
})

/** Calls in flight of a connection. */
export interface CallsInFlight {
  readonly count: number
}

/** Applies the settings to a connection. */
export const watch = (
  session: Http2Session,
  options: KeepaliveSettings,
  calls: CallsInFlight,
  limits: LimitReports,
): void => {
  new Pings(session, options, calls, limits).begin()
  endWhenOld(session, options)
}

const millis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

/** Options that must be above 0. */
const positive = new Set(["time", "timeout", "maxConnectionAge"])

/** Bytes of a ping, and of its acknowledgement: frame header and payload. */
const pingLength = 9 + 8

/** Interval without calls: that of TCP's keepalive. */
const minReceiveIntervalWithoutCalls = 2 * 60 * 60 * 1000

/**
 * Pings of both sides of one connection. Whether it sent anything but pings follows from its byte counts. The frames at
 * its start count as data, so the first pings are not limited.
 */
class Pings {
  readonly #session: Http2Session
  readonly #options: KeepaliveSettings
  readonly #calls: CallsInFlight
  readonly #limits: LimitReports
  /** Pings that were sent, or received and acknowledged. */
  #frames = 0
  #timer: NodeJS.Timeout | undefined
  /** Bytes received, and data sent, at the last check. */
  #received: number
  #data: number
  #pingsWithoutData = 0
  #strikes = 0
  /** When the client's last ping has come, and the data that was sent until then. */
  #lastPing = -Infinity
  #dataAtPing: number

  constructor(session: Http2Session, options: KeepaliveSettings, calls: CallsInFlight, limits: LimitReports) {
    this.#session = session
    this.#options = options
    this.#calls = calls
    this.#limits = limits
    this.#received = session.bytesRead
    this.#data = this.#sentData()
    this.#dataAtPing = this.#data
  }

  begin(): void {
    this.#checkLater()
    this.#session.onPing(() => this.#onPing())
    this.#session.onClose(() => clearTimeout(this.#timer))
  }

  /** Bytes other than pings. Too low while responses to pings wait to be sent. */
  #sentData(): number {
    return this.#session.bytesWritten - this.#frames * pingLength
  }

  #checkLater(): void {
    this.#timer = Timer.start(() => this.#check(), this.#options.time)
  }

  #check(): void {
    if (this.#session.isDestroyed) return
    const { timeout, maxPingsWithoutData, permitWithoutCalls } = this.#options
    if (this.#hasSentData()) this.#pingsWithoutData = 0
    const isWanted = this.#calls.count > 0 || permitWithoutCalls
    const isAllowed = maxPingsWithoutData === 0 || this.#pingsWithoutData < maxPingsWithoutData
    if (this.#hasReceived() || !isWanted || !isAllowed) return this.#checkLater()
    this.#pingsWithoutData += 1
    this.#frames += 1
    this.#session.ping(() => {
      clearTimeout(this.#timer)
      this.#received = this.#session.bytesRead
      this.#checkLater()
    })
    this.#timer = Timer.start(() => {
      if (this.#session.isDestroyed) return
      // Any received bytes count: the ping's acknowledgement may be queued behind a large message.
      if (this.#hasReceived()) this.#checkLater()
      else this.#session.destroy()
    }, timeout)
  }

  #hasReceived(): boolean {
    const before = this.#received
    this.#received = this.#session.bytesRead
    return this.#received > before
  }

  #hasSentData(): boolean {
    const before = this.#data
    this.#data = Math.max(before, this.#sentData())
    return this.#data > before
  }

  /** The client has sent a ping, whose acknowledgement is sent or about to be. */
  #onPing(): void {
    const { minReceiveInterval, permitWithoutCalls, maxPingStrikes } = this.#options
    const before = this.#dataAtPing
    this.#dataAtPing = Math.max(before, this.#sentData())
    this.#frames += 1
    const now = performance.now()
    const hasCalls = this.#calls.count > 0 || permitWithoutCalls
    const allowed = this.#lastPing + (hasCalls ? minReceiveInterval : minReceiveIntervalWithoutCalls)
    this.#lastPing = now
    if (this.#dataAtPing > before) this.#strikes = 0
    else if (now < allowed) this.#strikes += 1
    if (maxPingStrikes === 0 || this.#strikes <= maxPingStrikes || this.#session.isDestroyed) return
    const client = this.#session.remoteAddress ?? "a client that has disconnected"
    this.#limits.acted("pings", `Closing an HTTP/2 connection of ${client}: its client sends pings too often`)
    this.#session.closeAtOnce("too_many_pings")
  }
}

const endWhenOld = (session: Http2Session, options: KeepaliveSettings): void => {
  const { maxConnectionAge, maxConnectionAgeGrace } = options
  let timer = Timer.start(
    () => {
      session.closeGracefully("max_age")
      timer = Timer.start(() => session.destroy(), maxConnectionAgeGrace)
    },
    maxConnectionAge * (0.9 + Math.random() / 5),
  )
  if (timer === undefined) return
  session.onClose(() => clearTimeout(timer))
}
