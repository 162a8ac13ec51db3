/**
 * One call over several replicas: its attempts, one behind another or, as hedges, beside each other. The first success
 * ends it, and the other attempts are cancelled on their servers.
 */
import { constVoid } from "effect/Function"
import { Exit, Result } from "effect"
import { type InferenceError, retryAfter, SequenceNotFound } from "@nereid/core/internal/error/InferenceError"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as SessionParameters from "@nereid/core/internal/request/SessionParameters"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { FailureCause, ServerChannel } from "../channel/Channel.ts"
import type { AttemptMetrics, AttemptOutcome, AttemptReason } from "./AttemptMetrics.ts"
import type { AttemptSpan, BeginSpan } from "./AttemptSpan.ts"
import type { Hedging } from "./Hedging.ts"
import type { Replica } from "./Replica.ts"
import type { ReplicaSet } from "./ReplicaSet.ts"
import type { ReplicaSettings } from "./ReplicaSettings.ts"
import type { RetryBudget } from "./RetryBudget.ts"
import * as RetryRule from "./RetryRule.ts"
import { type SequenceAffinity, type SequenceId, sequenceOf } from "./SequenceAffinity.ts"
import type { Timers } from "./Timers.ts"

/** The state that all calls of a client share. */
export interface CallContext {
  readonly settings: Pick<ReplicaSettings, "idempotent" | "attempts">
  readonly replicas: ReplicaSet
  readonly affinity: SequenceAffinity
  readonly budget: RetryBudget
  /** Undefined for no hedges. */
  readonly hedging: Hedging | undefined
  readonly timers: Timers
  readonly metrics: AttemptMetrics
  readonly beginSpan: BeginSpan
}

export type Outcome<A> = Result.Result<A, InferenceError>

/** The call itself, as an attempt sends it. */
export interface CallRequest<A> {
  readonly wire: WireRequest
  /** Time of all attempts, in milliseconds; undefined for no end. */
  readonly timeoutMs: number | undefined
  /** Whether a second attempt may begin beside the first. */
  readonly mayHedge: boolean
  /**
   * Sends an attempt. `end` is called once, unless the attempt is cancelled. `commit` is called when the caller
   * receives a response of a stream, so that no other attempt can replace this one.
   */
  readonly send: (
    channel: ServerChannel,
    wire: WireRequest,
    remaining: number | undefined,
    end: (outcome: Outcome<A>, cause?: FailureCause) => void,
    commit: () => void,
  ) => Cancel
  readonly reply: (outcome: Outcome<A>) => void
}

/** Time to the next attempt of a hedge that found no replica, in milliseconds. */
const hedgeInterval = 100

interface Attempt {
  readonly replica: Replica
  readonly reason: AttemptReason
  readonly startedAt: number
  readonly span: AttemptSpan | undefined
  cancel: Cancel
}

export class ReplicatedCall<A> {
  readonly #context: CallContext
  readonly #request: CallRequest<A>
  readonly #sequence: SequenceId | undefined
  readonly #startedAt: number
  readonly #inFlight = new Set<Attempt>()
  readonly #tried: Array<Replica> = []
  /** Attempts that count against the limit: all but those that another replica took over unsent. */
  #counted = 0
  #isCommitted = false
  #isOver = false
  #cancelTimer: Cancel = constVoid
  readonly #onUnhealthy = () => this.#hedge()

  constructor(context: CallContext, request: CallRequest<A>) {
    this.#context = context
    this.#request = request
    this.#sequence = sequenceOf(request.wire.parameters)
    this.#startedAt = context.timers.now()
  }

  /** Sends the first attempt. There is a replica. */
  start(): void {
    const { replicas } = this.#context
    const replica = this.#pinned() ?? replicas.pick(this.#tried)
    if (replica !== undefined) this.#begin(replica, "first")
  }

  /** Fails a call that has no replica. */
  fail(error: InferenceError): void {
    if (!this.#isOver) this.#finish(Result.fail(error))
  }

  /** Ends the call without a reply: its caller has left, or its time has passed. */
  cancel(): void {
    if (this.#isOver) return
    const { timers, replicas } = this.#context
    const { timeoutMs = Infinity } = this.#request
    const now = timers.now()
    // Timers may fire a little early.
    const isTimeout = now - this.#startedAt >= timeoutMs - 1
    for (const attempt of this.#inFlight) {
      const hadTime = now - attempt.startedAt >= timeoutMs / 2
      if (isTimeout && hadTime) replicas.failed(attempt.replica, "failed")
      this.#abandon(attempt, isTimeout ? "failure" : "cancelled", now)
    }
    this.#end()
  }

  /** The replica of the sequence that the request continues. */
  #pinned(): Replica | undefined {
    return this.#sequence === undefined || this.#isStart ? undefined : this.#context.affinity.find(this.#sequence)
  }

  #begin(replica: Replica, reason: AttemptReason): void {
    const { timers, affinity, beginSpan } = this.#context
    const { wire, timeoutMs, send } = this.#request
    const now = timers.now()
    this.#counted += 1
    this.#tried.push(replica)
    replica.outstanding += 1
    if (this.#sequence !== undefined) affinity.set(this.#sequence, replica)
    const span = beginSpan(wire, replica.address, reason, this.#tried.length)
    const attempt: Attempt = { replica, reason, startedAt: now, span, cancel: constVoid }
    this.#inFlight.add(attempt)
    const traced = span === undefined ? wire : { ...wire, parent: span.span }
    const remaining = timeoutMs === undefined ? undefined : timeoutMs - (now - this.#startedAt)
    const cancel = send(
      replica.channel,
      traced,
      remaining,
      (outcome, cause) => this.#ended(attempt, outcome, cause),
      () => (this.#isCommitted = true),
    )
    if (!this.#inFlight.has(attempt)) return
    attempt.cancel = cancel
    if (this.#mayHedge) this.#prepareHedge(replica, now)
  }

  get #mayHedge(): boolean {
    const { settings } = this.#context
    return settings.idempotent && this.#request.mayHedge && this.#sequence === undefined
  }

  #prepareHedge(replica: Replica, now: number): void {
    const { hedging, timers } = this.#context
    replica.onUnhealthy.add(this.#onUnhealthy)
    this.#cancelTimer()
    const delay = hedging?.delay(now)
    if (delay !== undefined) this.#cancelTimer = timers.after(delay, () => this.#hedge())
  }

  #hedge(): void {
    const { replicas, budget, settings, timers } = this.#context
    if (this.#isOver || this.#counted >= settings.attempts) return
    const replica = replicas.untried(this.#tried)
    if (replica !== undefined && budget.hedge()) return this.#begin(replica, "hedge")
    // Perhaps there is one later, or the budget permits it.
    this.#cancelTimer()
    this.#cancelTimer = timers.after(hedgeInterval, () => this.#hedge())
  }

  #ended(attempt: Attempt, outcome: Outcome<A>, cause: FailureCause | undefined): void {
    if (!this.#inFlight.has(attempt)) return
    const { timers, budget, hedging } = this.#context
    const { replica, startedAt, span } = attempt
    const now = timers.now()
    const isSuccess = Result.isSuccess(outcome)
    this.#release(attempt, isSuccess ? "success" : "failure", now)
    span?.end(isSuccess ? Exit.void : Exit.fail(outcome.failure))
    if (!isSuccess) return this.#failed(replica, outcome.failure, cause, now)
    replica.ejection.succeeded(now)
    replica.latency.record(now - startedAt, now)
    hedging?.record(now - startedAt, now)
    budget.succeeded()
    this.#finish(outcome)
  }

  #failed(replica: Replica, error: InferenceError, cause: FailureCause | undefined, now: number): void {
    const kind = RetryRule.kindOf(error, cause)
    this.#observe(replica, error, kind, now)
    if (this.#isOver) return
    const lost = this.#sequenceLoss(replica, error, cause)
    const isRepeatable = SessionParameters.isRepeatable(this.#request.wire.parameters)
    if (lost !== undefined && !isRepeatable) return this.#finish(Result.fail(lost))
    const last = Result.fail(lost ?? error)
    if (this.#isCommitted || !RetryRule.mayRetry(kind, this.#context.settings.idempotent || isRepeatable)) {
      return this.#finish(last)
    }
    if (!this.#retry(lost ?? error, kind, now) && this.#inFlight.size === 0) this.#finish(last)
  }

  /** Records what a failure says about its replica. */
  #observe(replica: Replica, error: InferenceError, kind: RetryRule.FailureKind, now: number): void {
    const { replicas } = this.#context
    if (kind === "refused") replica.pausedUntil = now + (retryAfter(error) ?? 0)
    if (RetryRule.isReplicaFailure(error, kind)) replicas.failed(replica, kind === "unsent" ? "unreachable" : "failed")
    else if (kind === "final") replica.ejection.succeeded(now)
  }

  /** The error of a request whose replica has left with the state of its sequence. */
  #sequenceLoss(
    replica: Replica,
    error: InferenceError,
    cause: FailureCause | undefined,
  ): SequenceNotFound | undefined {
    if (this.#sequence === undefined || this.#isStart) return undefined
    if (cause !== "unsent" && cause !== "lost") return undefined
    const message = `the sequence was on the replica ${replica.address}, which is lost: ${error.message}`
    return new SequenceNotFound({ message, reason: "failed" })
  }

  /** Returns whether another attempt has begun, or begins later. */
  #retry(error: InferenceError, kind: RetryRule.FailureKind, now: number): boolean {
    const { replicas, settings, timers, budget } = this.#context
    const elsewhere = this.#pinned() === undefined ? replicas.untried(this.#tried) : undefined
    const isFree = kind === "unsent" && elsewhere !== undefined
    if (isFree) this.#counted -= 1
    else if (kind !== "unsent" && !budget.failed()) return false
    if (this.#counted >= settings.attempts) return false
    const pause = RetryRule.pause(error, this.#counted, elsewhere !== undefined, timers.random)
    if (elsewhere !== undefined) {
      this.#begin(elsewhere, "retry")
      return true
    }
    const { timeoutMs = Infinity } = this.#request
    // An attempt beside this one may still succeed, and a pause beyond the deadline is useless.
    if (this.#inFlight.size > 0 || now + pause - this.#startedAt >= timeoutMs) return false
    this.#cancelTimer()
    this.#cancelTimer = timers.after(pause, () => {
      const replica = this.#pinned() ?? replicas.pick(this.#tried)
      if (replica === undefined) this.#finish(Result.fail(error))
      else this.#begin(replica, "retry")
    })
    return true
  }

  get #isStart(): boolean {
    return this.#request.wire.parameters["sequence_start"] === true
  }

  #finish(outcome: Outcome<A>): void {
    const { timers, hedging } = this.#context
    const now = timers.now()
    for (const attempt of this.#inFlight) {
      hedging?.record(now - attempt.startedAt, now)
      this.#abandon(attempt, "superseded", now)
    }
    this.#endSequence(outcome)
    this.#end()
    this.#request.reply(outcome)
  }

  /** Forgets the replica of a sequence that is over. */
  #endSequence(outcome: Outcome<A>): void {
    const { affinity } = this.#context
    if (this.#sequence === undefined) return
    const isOver = Result.isFailure(outcome)
      ? this.#isStart || outcome.failure._tag === "SequenceNotFound"
      : this.#request.wire.parameters["sequence_end"] === true
    if (isOver) affinity.forget(this.#sequence)
  }

  #end(): void {
    this.#isOver = true
    this.#cancelTimer()
  }

  /** Cancels an attempt whose result is not needed. */
  #abandon(attempt: Attempt, outcome: AttemptOutcome, now: number): void {
    this.#release(attempt, outcome, now)
    attempt.replica.latency.recordAtLeast(now - attempt.startedAt, now)
    attempt.span?.end(Exit.interrupt())
    attempt.cancel()
  }

  #release(attempt: Attempt, outcome: AttemptOutcome, now: number): void {
    const { replicas, metrics } = this.#context
    const { replica, reason, startedAt } = attempt
    this.#inFlight.delete(attempt)
    replica.outstanding -= 1
    if (this.#mayHedge) replica.onUnhealthy.delete(this.#onUnhealthy)
    metrics.attempted(replica, reason, outcome, now - startedAt)
    replicas.closeIfUnused(replica)
  }
}
