/** Options of a client of one server or several replicas, and their defaults. */
import { Duration, Option, Result } from "effect"
import type { InvalidUrl, Protocol, ServerUrl } from "@nereid/core/internal/wire/ServerUrl"
import { type ClientOptions, type ClientSettings, settings as connectionSettings } from "../channel/ClientOptions.ts"
import type { EjectionSettings } from "./Ejection.ts"
import type { HealthSettings } from "./HealthCheck.ts"
import type { HedgeSettings } from "./Hedging.ts"
import type { ReplicaSettings, ReplicaTargets } from "./ReplicaSettings.ts"
import * as ReplicaUrls from "./ReplicaUrls.ts"
import type { RetryBudgetSettings } from "./RetryBudget.ts"

/** Options of a client: the server or its replicas, and limits of calls. */
export interface ReplicatedOptions extends Omit<ClientOptions, "url"> {
  /**
   * URL of the server: `grpc://host`, `grpcs://host`, `http://host` or `https://host`, with an optional port. Default
   * port: 8001 for grpc, 8000 for http, 443 with TLS. http and https URLs may have a path, which precedes `/v2`.
   *
   * The scheme may be omitted in front of a port, as in `localhost:8001`. The client then finds out at the first call
   * whether the server speaks gRPC or only HTTP/1.1; a server that speaks both is called over gRPC.
   *
   * Several replicas of a server are a list of such URLs, or a name that is looked up again and again, and whose
   * addresses are the replicas: `dns:///models:8001` for gRPC, and `dns+grpcs://models`, `dns+http://models` or
   * `dns+https://models` for the other protocols.
   */
  readonly url: string | ReadonlyArray<string>
  /** How calls are distributed over replicas, and repeated. Also applies to a single URL if given. */
  readonly replicas?: ReplicaOptions
}

/** Options of calls to replicas. `hedge` requires `idempotent: true`, because both replicas may execute the request. */
export type ReplicaOptions = DistributionOptions & (OnceOptions | IdempotentOptions)

interface DistributionOptions {
  /** gRPC connections to each replica. Default 1, at most 64. Over HTTP, calls open connections as they need them. */
  readonly connections?: number
  /** Time between two lookups of a name. Default 30 seconds, at least 1 second. */
  readonly lookupInterval?: Duration.Input
  /** Attempts of a call, the first one included. Default 3, at most 10. */
  readonly attempts?: number
  readonly retryBudget?: RetryBudgetOptions
  /** Asks each replica whether it takes requests. Default false: only failures of calls count. */
  readonly health?: boolean | HealthOptions
  readonly ejection?: EjectionOptions
}

interface OnceOptions {
  /** Default false: a request is sent again only if no server can have executed it. */
  readonly idempotent?: false
  readonly hedge?: never
}

interface IdempotentOptions {
  /**
   * Declares that executing a request twice does no harm, as with a model without side effects. A request is then sent
   * again, too, if its connection is lost or its server is unavailable.
   */
  readonly idempotent: true
  /** Sends a call to a second replica if the first has not responded in time. Default: no such attempts. */
  readonly hedge?: HedgeOptions
}

/** When a call is sent to another replica: after a time, or at a percentile of the last minute's response times. */
export type HedgeOptions =
  | { readonly after: Duration.Input; readonly percentile?: never }
  /** From 50 to 99.9. There are no hedges before 100 responses. */
  | { readonly percentile: number; readonly after?: never }

/** Limits how often requests are sent again. With half of its tokens or fewer, none is. */
export interface RetryBudgetOptions {
  /** Tokens at the start, and at most. A failure that may be retried takes one, and so does a hedge. Default 100. */
  readonly tokens?: number
  /** Tokens that a success returns, above 0 and at most 1. Default 0.1. */
  readonly ratio?: number
}

/** Health checks by `grpc.health.v1`, or by `/v2/health/ready` over HTTP. */
export interface HealthOptions {
  /** Time between two checks of a replica. Default 1 second, at least 100 milliseconds. */
  readonly interval?: Duration.Input
  /** Time in which a replica must respond. Default 1 second. */
  readonly timeout?: Duration.Input
}

/** Ejection of replicas after failures. */
export interface EjectionOptions {
  /** Failures in a row that eject a replica. One is enough if it cannot be reached. Default 5. */
  readonly failures?: number
  /** Time of the first ejection; each further one takes twice as long. Default 1 second. */
  readonly time?: Duration.Input
  /** Longest ejection. Default 1 minute. */
  readonly maxTime?: Duration.Input
  /** Time in which a replica returns to its full share of the calls. Default 10 seconds; 0 for at once. */
  readonly returnTime?: Duration.Input
  /**
   * Share of the replicas, from 0 to 1: if fewer are left, ejections are ignored. Default 0: they are ignored if none
   * is left.
   */
  readonly panicThreshold?: number
}

/** Parsed options with defaults. The endpoint is that of the first replica, or of the name. */
export interface ReplicatedSettings extends ClientSettings {
  /** Undefined for a single server without `replicas`. */
  readonly replicas: ReplicaSettings | undefined
}

/**
 * Parses the options and adds the defaults. Fails if a URL is invalid.
 * @throws TypeError if another option is invalid
 */
export const settings = (
  { url, replicas, ...options }: ReplicatedOptions,
  assumed?: Protocol,
): Result.Result<ReplicatedSettings, InvalidUrl> => {
  const single = typeof url === "string" && !ReplicaUrls.isName(url)
  const policy = single && replicas === undefined ? undefined : policySettings(replicas ?? {})
  const connection = connectionSettings({ ...options, url: single ? url : anyUrl }, assumed)
  if (policy === undefined) return Result.map(connection, (settings) => ({ ...settings, replicas: undefined }))
  return Result.flatMap(connection, (settings) =>
    Result.map(targets(url, lookupInterval(replicas), assumed), ([endpoint, found]) => {
      requireApplicable(replicas ?? {}, found)
      return { ...settings, endpoint, replicas: { ...policy, targets: found } }
    }),
  )
}

/** A valid URL, because the other options are parsed with one. `targets` parses those of replicas. */
const anyUrl = "grpc://replicas"

const targets = (
  url: string | ReadonlyArray<string>,
  interval: number,
  assumed: Protocol | undefined,
): Result.Result<readonly [ServerUrl, ReplicaTargets], InvalidUrl> => {
  if (typeof url === "string" && ReplicaUrls.isName(url)) {
    return Result.map(ReplicaUrls.parseName(url), (server) => [server, { _tag: "Name", server, interval }])
  }
  const urls = typeof url === "string" ? [url] : url
  return Result.map(ReplicaUrls.parseList(urls, assumed), (servers) => [servers[0], { _tag: "List", servers }])
}

type PolicySettings = Omit<ReplicaSettings, "targets">

const names: { readonly [K in keyof Required<ReplicaOptions>]: true } = {
  connections: true,
  lookupInterval: true,
  attempts: true,
  retryBudget: true,
  health: true,
  ejection: true,
  idempotent: true,
  hedge: true,
}

const policySettings = (options: ReplicaOptions): PolicySettings => {
  requireKnown("replicas", options, Object.keys(names))
  const { connections = 1, attempts = 3, idempotent = false, hedge } = options
  requireInteger("replicas.connections", connections, 1, 64)
  requireInteger("replicas.attempts", attempts, 1, 10)
  if (hedge !== undefined && !idempotent) {
    throw new TypeError(
      "replicas.hedge requires replicas.idempotent: true, because both replicas may execute the request.",
    )
  }
  if (hedge !== undefined && attempts === 1) {
    throw new TypeError("replicas.attempts is 1, which leaves no attempt for replicas.hedge.")
  }
  return {
    connections,
    attempts,
    idempotent,
    hedge: hedge && hedgeSettings(hedge),
    retryBudget: budgetSettings(options.retryBudget ?? {}),
    health: healthSettings(options.health ?? false),
    ...ejectionSettings(options.ejection ?? {}),
  }
}

const lookupInterval = ({ lookupInterval = "30 seconds" }: ReplicaOptions = {}): number =>
  millis("replicas.lookupInterval", lookupInterval, 1_000)

const hedgeSettings = (options: HedgeOptions): HedgeSettings => {
  requireKnown("replicas.hedge", options, ["after", "percentile"])
  const { after, percentile } = options
  if (percentile === undefined && after !== undefined) return { after: millis("replicas.hedge.after", after, 1) }
  if (after !== undefined || percentile === undefined) {
    throw new TypeError("replicas.hedge must have either after or percentile.")
  }
  requireNumber("replicas.hedge.percentile", percentile, 50, 99.9)
  return { percentile }
}

const budgetSettings = (options: RetryBudgetOptions): RetryBudgetSettings => {
  requireKnown("replicas.retryBudget", options, ["tokens", "ratio"])
  const { tokens = 100, ratio = 0.1 } = options
  requireInteger("replicas.retryBudget.tokens", tokens, 1, 10_000)
  requireNumber("replicas.retryBudget.ratio", ratio, 0.001, 1)
  return { tokens, ratio }
}

const healthSettings = (options: boolean | HealthOptions): HealthSettings | undefined => {
  if (options === false) return undefined
  const given: HealthOptions = options === true ? {} : options
  requireKnown("replicas.health", given, ["interval", "timeout"])
  const { interval = "1 second", timeout = "1 second" } = given
  return {
    interval: millis("replicas.health.interval", interval, 100),
    timeout: millis("replicas.health.timeout", timeout, 1),
  }
}

const ejectionSettings = (
  options: EjectionOptions,
): { readonly ejection: EjectionSettings; readonly panicThreshold: number } => {
  requireKnown("replicas.ejection", options, ["failures", "time", "maxTime", "returnTime", "panicThreshold"])
  const { failures = 5, time = "1 second", maxTime = "1 minute", returnTime = "10 seconds" } = options
  const { panicThreshold = 0 } = options
  requireInteger("replicas.ejection.failures", failures, 1, 1_000)
  requireNumber("replicas.ejection.panicThreshold", panicThreshold, 0, 1)
  const ejection = {
    failures,
    time: millis("replicas.ejection.time", time, 1),
    maxTime: millis("replicas.ejection.maxTime", maxTime, 1),
    returnTime: millis("replicas.ejection.returnTime", returnTime, 0),
  }
  if (ejection.time > ejection.maxTime) {
    throw new TypeError("replicas.ejection.time must not exceed replicas.ejection.maxTime.")
  }
  return { ejection, panicThreshold }
}

/** @throws TypeError if an option does not apply to these replicas */
const requireApplicable = ({ lookupInterval, connections }: ReplicaOptions, targets: ReplicaTargets): void => {
  if (lookupInterval !== undefined && targets._tag === "List") {
    throw new TypeError("replicas.lookupInterval applies only to a name, such as dns:///models:8001.")
  }
  const servers = targets._tag === "List" ? targets.servers : [targets.server]
  if (connections !== undefined && servers.every(({ protocol }) => protocol === "http")) {
    throw new TypeError(
      "replicas.connections applies only to gRPC. Over HTTP, calls open connections as they need them.",
    )
  }
}

const requireKnown = (option: string, given: object, known: ReadonlyArray<string>): void => {
  const unknown = Object.keys(given).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new TypeError(`${option} has no option '${unknown}', but ${known.join(", ")}.`)
}

const requireInteger = (option: string, value: number, least: number, most: number): void => {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw new TypeError(`${option} must be an integer from ${least} to ${most}, but ${value} was given.`)
}

const requireNumber = (option: string, value: number, least: number, most: number): void => {
  if (value >= least && value <= most) return
  throw new TypeError(`${option} must be from ${least} to ${most}, but ${value} was given.`)
}

const millis = (option: string, input: Duration.Input, least: number): number => {
  const duration = Duration.fromInput(input)
  const value = Option.isSome(duration) ? Duration.toMillis(duration.value) : Number.NaN
  if (value >= least && value < Infinity) return value
  throw new TypeError(`${option} must be a duration of at least ${least} ms, but ${String(input)} was given.`)
}
