/**
 * The queue options of a model: maximum size, timeouts, priorities, and whether responses keep the order of their
 * requests. Includes the checked options with their defaults. PolicyQueue.ts implements them.
 */
import { Duration } from "effect"
import type { Parameters } from "../request/Request.ts"
import { positive, requireInteger } from "./OptionChecks.ts"

/** Handling of a request that exceeds its queue timeout: reject it, or serve it after all requests within theirs. */
export type TimeoutAction = "REJECT" | "DELAY"

export interface QueuePolicyOptions {
  /**
   * Requests that may wait; one more is refused. Default 1024, and at least `maxSequences` of a model with sequences.
   */
  readonly maxQueueSize?: number
  /** Maximum time in the queue, in addition to the caller's deadline. Default unlimited. */
  readonly defaultTimeout?: Duration.Input
  /** Default "REJECT". */
  readonly timeoutAction?: TimeoutAction
  /** Whether a request may shorten its time by its parameter `timeout`, in microseconds. Default false. */
  readonly allowTimeoutOverride?: boolean
}

export interface PriorityOptions {
  /** Number of levels. The parameter `priority` of a request selects its level; level 1 goes first. */
  readonly levels: number | bigint
  /** The level of requests without a valid level. */
  readonly default: number | bigint
  /** Policies of single levels, each of which replaces the model's policy entirely. */
  readonly policies?: { readonly [level: number]: QueuePolicyOptions }
}

interface Prioritized extends QueuePolicyOptions {
  /** Whether responses have the order of their requests. Default false: as soon as they are ready. */
  readonly preserveOrdering?: false
  /** Default: all requests are equal. `maxQueueSize` is that of each level then. */
  readonly priorities?: PriorityOptions
}

/** Responses keep the order of their requests. */
interface Ordered extends QueuePolicyOptions {
  readonly preserveOrdering: true
  readonly priorities?: never
  readonly timeoutAction?: "REJECT"
}

/** The policy of the model, for all levels without a separate policy, and the rules between levels. */
export type QueueingOptions = Prioritized | Ordered

/** A policy with its defaults. */
export interface QueuePolicy {
  readonly maxQueueSize: number
  /** Infinite for any time. */
  readonly defaultTimeout: Duration.Duration
  readonly timeoutAction: TimeoutAction
  readonly allowTimeoutOverride: boolean
}

/** The options with their defaults. */
export interface Queueing {
  readonly preserveOrdering: boolean
  /** 0: all requests are equal. */
  readonly priorityLevels: bigint
  /** 0 without levels. */
  readonly defaultPriorityLevel: bigint
  readonly defaultPolicy: QueuePolicy
  readonly policies: ReadonlyMap<bigint, QueuePolicy>
}

export const defaultMaxQueueSize = 1024

/** All requests are equal, and wait as long as they like. */
export const plain = (maxQueueSize: number): Queueing => ({
  preserveOrdering: false,
  priorityLevels: 0n,
  defaultPriorityLevel: 0n,
  defaultPolicy: {
    maxQueueSize,
    defaultTimeout: Duration.infinity,
    timeoutAction: "REJECT",
    allowTimeoutOverride: false,
  },
  policies: new Map(),
})

/**
 * The checked options; undefined if only a maximum size is set.
 * @throws TypeError if an option is out of range, or conflicts with another
 */
export const resolve = (model: string, options: QueueingOptions): Queueing | undefined => {
  const refuse = (text: string) => new TypeError(`Model "${model}": ${text}.`)
  const { preserveOrdering = false, priorities, ...policy } = options
  const defaultPolicy = resolvePolicy(model, policy)
  const levels = integer("priorities.levels", priorities?.levels ?? 0, refuse)
  const level = integer("priorities.default", priorities?.default ?? 0, refuse)
  const policies = new Map(
    Object.entries(priorities?.policies ?? {}).map(([level, policy]) => [
      integer("a level of priorities.policies", level, refuse),
      resolvePolicy(model, policy),
    ]),
  )
  if (priorities !== undefined && levels < 1n)
    throw refuse(`priorities.levels must be at least 1, but ${levels} was given`)
  for (const named of priorities === undefined ? [] : [level, ...policies.keys()]) {
    if (named >= 1n && named <= levels) continue
    const subject = named === level ? "default priority level" : "priority levels for custom queue policies"
    throw refuse(`${subject} must be in range [1, ${levels}], but ${named} was given`)
  }
  if (preserveOrdering && levels > 1n) throw refuse("only one priority level is allowed when preserveOrdering is true")
  if (
    preserveOrdering &&
    [defaultPolicy, ...policies.values()].some(({ timeoutAction }) => timeoutAction === "DELAY")
  ) {
    throw refuse("a queue policy can not have DELAY as timeout action when preserveOrdering is true")
  }
  const queueing = { preserveOrdering, priorityLevels: levels, defaultPriorityLevel: level, defaultPolicy, policies }
  return isPlain(queueing) ? undefined : queueing
}

/** Whether only a maximum size is set. */
export const isPlain = ({ preserveOrdering, priorityLevels, defaultPolicy }: Queueing): boolean => {
  const isDelayed = defaultPolicy.timeoutAction === "DELAY"
  return !preserveOrdering && priorityLevels === 0n && !isDelayed && !isTimed(defaultPolicy)
}

/** Whether a request may have a queue timeout. */
const isTimed = ({ defaultTimeout, allowTimeoutOverride }: QueuePolicy): boolean =>
  Duration.isFinite(defaultTimeout) || allowTimeoutOverride

const resolvePolicy = (model: string, options: QueuePolicyOptions): QueuePolicy => {
  const { maxQueueSize = defaultMaxQueueSize, timeoutAction = "REJECT", allowTimeoutOverride = false } = options
  const defaultTimeout = positive(model, "defaultTimeout", options.defaultTimeout ?? Duration.infinity)
  requireInteger(model, "maxQueueSize", maxQueueSize, 1)
  return { maxQueueSize, defaultTimeout, timeoutAction, allowTimeoutOverride }
}

const integer = (option: string, value: number | bigint | string, refuse: (text: string) => TypeError): bigint => {
  try {
    return BigInt(value)
  } catch {
    throw refuse(`${option} must be an integer, but ${value} was given`)
  }
}

export const policyOf = ({ defaultPolicy, policies }: Queueing, level: bigint): QueuePolicy =>
  policies.get(level) ?? defaultPolicy

/** The level at which a request with these parameters waits. */
export const levelOf = ({ priorityLevels, defaultPriorityLevel }: Queueing, { priority }: Parameters): bigint =>
  typeof priority === "bigint" && priority >= 1n && priority <= priorityLevels ? priority : defaultPriorityLevel

/** How long a request with these parameters may wait, in nanoseconds; infinite for any time. */
export const timeoutOf = ({ defaultTimeout, allowTimeoutOverride }: QueuePolicy, { timeout }: Parameters): number => {
  const limit = Duration.toMillis(defaultTimeout) * 1e6
  // A timeout of 0 is unset, and a longer one does not override the limit.
  if (!allowTimeoutOverride || typeof timeout !== "bigint" || timeout <= 0n) return limit
  return Math.min(limit, Number(timeout) * 1e3)
}
