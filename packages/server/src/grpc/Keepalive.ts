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
  const pings = new Pings(session)
  sendPings(session, options, calls, pings)
  countStrikes(session, options, calls, pings, limits)
  endWhenOld(session, options)
}

const millis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

/** Options that must be above 0. */
const positive = new Set(["time", "timeout", "maxConnectionAge"])

/** Bytes of a ping, and of its acknowledgement: frame header and payload. */
const pingLength = 9 + 8

/**
 * Tells whether a connection sent anything but pings, from its byte counts. The frames at its start count as data, so
 * the first pings are not limited.
 */
class Pings {
  readonly #session: Http2Session
  #frames = 0

  constructor(session: Http2Session) {
    this.#session = session
  }

  /** Counts a ping that was sent, or received and acknowledged. */
  count(): void {
    this.#frames += 1
  }

  /** Bytes other than pings. Too low while responses to pings wait to be sent. */
  data(): number {
    return this.#session.bytesWritten - this.#frames * pingLength
  }
}

const sendPings = (session: Http2Session, options: KeepaliveSettings, calls: CallsInFlight, pings: Pings): void => {
  const { time, timeout, maxPingsWithoutData, permitWithoutCalls } = options
  let received = session.bytesRead
  let data = pings.data()
  let pingsWithoutData = 0
  const hasReceived = () => {
    const before = received
    received = session.bytesRead
    return received > before
  }
  const hasSentData = () => {
    const before = data
    data = Math.max(data, pings.data())
    return data > before
  }
  const check = () => {
    if (session.isDestroyed) return
    if (hasSentData()) pingsWithoutData = 0
    const isWanted = calls.count > 0 || permitWithoutCalls
    const isAllowed = maxPingsWithoutData === 0 || pingsWithoutData < maxPingsWithoutData
    if (hasReceived() || !isWanted || !isAllowed) {
      timer = Timer.start(check, time)
      return
    }
    pingsWithoutData += 1
    pings.count()
    session.ping(() => {
      clearTimeout(timer)
      received = session.bytesRead
      timer = Timer.start(check, time)
    })
    timer = Timer.start(() => {
      if (session.isDestroyed) return
      // Any received bytes count: the ping's acknowledgement may be queued behind a large message.
      if (hasReceived()) timer = Timer.start(check, time)
      else session.destroy()
    }, timeout)
  }
  let timer = Timer.start(check, time)
  session.onClose(() => clearTimeout(timer))
}

/** Interval without calls: that of TCP's keepalive. */
const minReceiveIntervalWithoutCalls = 2 * 60 * 60 * 1000

const countStrikes = (
  session: Http2Session,
  options: KeepaliveSettings,
  calls: CallsInFlight,
  pings: Pings,
  limits: LimitReports,
): void => {
  const { minReceiveInterval, permitWithoutCalls, maxPingStrikes } = options
  let strikes = 0
  let last = -Infinity
  let data = pings.data()
  session.onPing(() => {
    const before = data
    data = Math.max(data, pings.data())
    pings.count()
    const now = performance.now()
    const hasCalls = calls.count > 0 || permitWithoutCalls
    const allowed = last + (hasCalls ? minReceiveInterval : minReceiveIntervalWithoutCalls)
    last = now
    if (data > before) strikes = 0
    else if (now < allowed) strikes += 1
    if (maxPingStrikes === 0 || strikes <= maxPingStrikes || session.isDestroyed) return
    const client = session.remoteAddress ?? "a client that has disconnected"
    limits.acted("pings", `Closing an HTTP/2 connection of ${client}: its client sends pings too often`)
    session.closeAtOnce("too_many_pings")
  })
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
  session.onClose(() => clearTimeout(timer))
}
