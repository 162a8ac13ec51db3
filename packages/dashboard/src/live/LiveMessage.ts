/**
 * Messages of the stream at `livePath`, each the JSON `data` of one server-sent event. The first message is an
 * `opening`. Each second then brings a `step`, which is also the heartbeat. The others follow a step if they changed.
 */
import type { Advice } from "./Advice.ts"
import type { LiveModel } from "./LiveModel.ts"
import type { LiveStep } from "./LiveStep.ts"
import type { SlowRequest } from "./SlowRequest.ts"

/** Path of the stream, below the path of the page. Its API for restrictions is `statistics`. */
export const livePath = "/live"

/** Viewers of a stream at a time. Further ones receive 503. */
export const maxViewers = 64

export interface Opening {
  readonly type: "opening"
  /** Time of the server, in milliseconds since the epoch. */
  readonly time: number
  readonly server: ServerFacts
  readonly models: ReadonlyArray<LiveModel>
  /** The oldest first. */
  readonly steps: ReadonlyArray<LiveStep>
  /** The slowest first. */
  readonly slow: ReadonlyArray<SlowRequest>
  /** Problems first. */
  readonly advice: ReadonlyArray<Advice>
}

export interface ServerFacts {
  readonly name: string
  readonly version: string
  /** Start of the server, in milliseconds since the epoch. */
  readonly started: number
  /** Control mode of the repository; `none` without a repository. */
  readonly control: "none" | "poll" | "explicit"
  /** Limit of the memory that callers make the server hold, in bytes; null for none. */
  readonly heldLimit: number | null
}

export type LiveMessage =
  | Opening
  | { readonly type: "step"; readonly step: LiveStep }
  /** All models, after one of them was loaded, unloaded or has failed. */
  | { readonly type: "models"; readonly models: ReadonlyArray<LiveModel> }
  /** All slow requests. */
  | { readonly type: "slow"; readonly slow: ReadonlyArray<SlowRequest> }
  /** All advice. */
  | { readonly type: "advice"; readonly advice: ReadonlyArray<Advice> }
