/**
 * A stage for requests with the parameter `sequence_number`, which counts the requests of a sequence from 1 at its
 * START. Unary calls may overtake one another, and a caller whose connection is lost may send a request again:
 *
 *   submit ─┬─ no number ───────────────────────────────────────────► scheduler
 *           ├─ expected ────────────────────────────────────────────► scheduler, then those that waited for it
 *           ├─ ahead, within the window ─► waits for those before it
 *           ├─ executing, or the last one ─► the same reply, without another execution
 *           └─ older, or beyond the window ─► InvalidRequest
 *
 * With `sequence_gaps`, numbers may be left out: the caller sends each request after the reply to the one before, so a
 * request is the expected one whatever its number, unless that was seen.
 *
 * A numbered request goes on when its caller leaves, because the caller may ask for the reply again.
 */
import { constVoid } from "effect/Function"
import { Result } from "effect"
import {
  DeadlineExceeded,
  type InferenceError,
  InvalidRequest,
  QueueFull,
  QueueTimeout,
  SequenceNotFound,
} from "../error/InferenceError.ts"
import { stopping } from "../error/Refusal.ts"
import type { RequestStatistics } from "../metrics/ModelStatistics.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"
import { type Cancel, errorPrefix, type Parameter, type Reply, type Request } from "../request/Request.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { AlarmClock } from "../scheduler/AlarmClock.ts"
import { Deadlines, type PendingRequest } from "../scheduler/Deadlines.ts"
import type { Submit } from "../scheduler/SubmitPipeline.ts"
import * as CorrelationId from "./CorrelationId.ts"
import { KeptReplies, type Outcome } from "./KeptReplies.ts"
import { RequestWindow } from "./RequestWindow.ts"

export interface NumberedRequestsOptions {
  /** Name of the model, for messages. */
  readonly model: string
  /** Requests of one sequence that may wait for an earlier one. */
  readonly window: number
  /** Requests of all sequences that may wait. */
  readonly maxWaiting: number
  /** Milliseconds that a request waits for an earlier one; infinite for no limit. */
  readonly maxWait: number
  /** Bytes of the last replies of all sequences. */
  readonly maxReplyBytes: number
  /** Equal for requests with equal inputs. */
  readonly keyOf: (request: Request) => string
  /** Whether a sequence with this id is remembered as over without its END, so that no START is likely to come. */
  readonly isLost: (id: SequenceId) => boolean
}

/** A request that waits or executes, with all callers that have sent it. */
interface Numbered extends PendingRequest<Numbered> {
  readonly sequence: Sequence
  readonly number: number
  readonly key: string
  /** With the time until which it waits as its deadline. */
  readonly request: Request
  readonly original: Request
  readonly counts: RequestStatistics | undefined
  readonly callers: Set<Reply>
}

interface Sequence {
  readonly id: SequenceId
  readonly window: RequestWindow<Numbered>
  /** Requests without a reply that the scheduler has, by number. */
  readonly executing: Map<number, Numbered>
  /** Key of its START. */
  startKey: string | undefined
  /** Whether the scheduler has its END. */
  hasEnd: boolean
}

/** Ended sequences whose last reply is kept. */
const maxEnded = 1000

/** Limits of every model. */
export const numberLimits = { window: 16, maxWaiting: 10_000, maxReplyBytes: 256 * 2 ** 20 } as const

export class NumberedRequests {
  readonly #options: NumberedRequestsOptions
  readonly #clock: AlarmClock["clock"]
  readonly #deadlines: Deadlines<Numbered>
  readonly #sequences = new Map<SequenceId, Sequence>()
  readonly #ended = new Set<Sequence>()
  readonly #replies: KeptReplies<Sequence>
  #waiting = 0
  #isStopped = false
  #next: Submit = () => constVoid

  constructor(options: NumberedRequestsOptions, alarms: AlarmClock) {
    this.#options = options
    this.#clock = alarms.clock
    this.#deadlines = new Deadlines(alarms, (numbered) => this.#expire(numbered))
    this.#replies = new KeptReplies(options.maxReplyBytes)
  }

  /** The stage in front of `next`. */
  before(next: Submit): Submit {
    this.#next = next
    return (request, reply, counts) => {
      const number = request.parameters["sequence_number"]
      return number === undefined ? next(request, reply, counts) : this.#submit(request, number, reply, counts)
    }
  }

  /** The sequence is over, and no other one has its id. */
  over(id: SequenceId): void {
    const sequence = this.#sequences.get(id)
    if (sequence === undefined) return
    if (!sequence.hasEnd) return this.#forget(sequence)
    this.#ended.add(sequence)
    const [oldest] = this.#ended.size > maxEnded ? this.#ended : []
    if (oldest !== undefined) this.#forget(oldest)
  }

  /** Refuses all that wait. */
  stop(): void {
    this.#isStopped = true
    for (const { window } of this.#sequences.values()) {
      for (const numbered of window.clear()) this.#answer(this.#left(numbered), Result.fail(stopping()))
    }
  }

  #submit(request: Request, given: Parameter, reply: Reply, counts: RequestStatistics | undefined): Cancel {
    const refuse = (error: InferenceError): Cancel => {
      reply(Result.fail(error))
      return constVoid
    }
    const { parameters } = request
    const id = CorrelationId.idOf(parameters)
    if (id === undefined || this.#isStopped) return this.#next(request, reply, counts)
    const number = typeof given === "bigint" ? Number(given) : NaN
    const isStart = CorrelationId.isStart(parameters)
    const gaps = parameters[SessionParameters.gaps]
    if (gaps !== undefined && typeof gaps !== "boolean") {
      const rule = `must be a boolean, but ${String(gaps)} was given`
      return refuse(this.#invalid(request, `parameter '${SessionParameters.gaps}' ${rule}`))
    }
    const hasGaps = gaps === true
    if (!Number.isSafeInteger(number) || number < 1 || (isStart && !hasGaps && number !== 1)) {
      const rule = isStart && !hasGaps ? "must be 1 with the START flag" : "must be an integer of at least 1"
      return refuse(this.#invalid(request, `parameter 'sequence_number' ${rule}, but ${String(given)} was given`))
    }
    const { window, isLost, keyOf, maxWaiting } = this.#options
    const key = keyOf(request)
    const known = this.#known(id, isStart, key)
    // The scheduler tells why there is no such sequence.
    if (known === undefined && !isStart && !hasGaps && (isLost(id) || number > window + 1)) {
      return this.#next(request, reply, counts)
    }
    const sequence = known ?? this.#begin(id)
    if (hasGaps) sequence.window.skipTo(number)
    const numbered = () => this.#numbered(sequence, request, { number, key, counts })
    switch (sequence.window.placeOf(number)) {
      case "expected": {
        if (sequence.hasEnd) return this.#next(request, reply, counts)
        const first = numbered()
        const cancel = this.#join(first, reply)
        this.#execute(first)
        return cancel
      }
      case "waiting": {
        if (sequence.hasEnd) return this.#next(request, reply, counts)
        const waiting = sequence.window.get(number)
        if (waiting !== undefined) {
          return waiting.key === key ? this.#join(waiting, reply) : refuse(this.#different(request, number, id))
        }
        if (this.#waiting >= maxWaiting) {
          return refuse(this.#full(request))
        }
        const added = numbered()
        this.#waiting += 1
        sequence.window.wait(number, added)
        this.#deadlines.add(added)
        return this.#join(added, reply)
      }
      case "seen": {
        const executing = sequence.executing.get(number)
        const kept = this.#replies.get(sequence)
        const seen = executing ?? (kept?.number === number ? kept : undefined)
        if (seen !== undefined && seen.key !== key) return refuse(this.#different(request, number, id))
        if (executing !== undefined) return this.#join(executing, reply)
        if (kept?.number === number && kept.outcome !== undefined) {
          reply(kept.outcome)
          return constVoid
        }
        const reason = kept?.number === number ? "its reply was not kept" : "only the last reply is kept"
        const rule = `was answered before, and ${reason}: ${sequence.window.expected} is expected next`
        return refuse(this.#invalid(request, `${this.#name(number, id)} ${rule}`))
      }
      case "beyond": {
        const { expected } = sequence.window
        const rule = `is too far ahead: ${expected} is expected next, and at most the ${window} numbers after it may wait`
        return refuse(this.#invalid(request, `${this.#name(number, id)} ${rule}`))
      }
    }
  }

  /** The sequence that the request belongs to; undefined for the START of another one. */
  #known(id: SequenceId, isStart: boolean, key: string): Sequence | undefined {
    const sequence = this.#sequences.get(id)
    if (sequence === undefined || !isStart || !sequence.hasEnd) return sequence
    // Once the END is answered, a caller may use the id again. A sequence of one request may be repeated.
    const isOpen = sequence.executing.size > 0 || this.#replies.get(sequence)?.number === 1
    if (isOpen && sequence.startKey === key) return sequence
    this.#forget(sequence)
    return undefined
  }

  #begin(id: SequenceId): Sequence {
    const { window } = this.#options
    const sequence: Sequence = {
      id,
      window: new RequestWindow(window),
      executing: new Map(),
      startKey: undefined,
      hasEnd: false,
    }
    this.#sequences.set(id, sequence)
    return sequence
  }

  #numbered(
    sequence: Sequence,
    original: Request,
    { number, key, counts }: Pick<Numbered, "number" | "key" | "counts">,
  ): Numbered {
    const latest = MonotonicTime.millis(this.#clock) + this.#options.maxWait
    const deadline = Math.min(original.deadline ?? Infinity, latest)
    const request = { ...original, deadline: deadline === Infinity ? undefined : deadline }
    return { sequence, number, key, request, original, counts, callers: new Set() }
  }

  /** Adds a caller, which may leave alone. */
  #join(numbered: Numbered, reply: Reply): Cancel {
    const caller: Reply = (outcome) => reply(outcome)
    numbered.callers.add(caller)
    return () => {
      const { callers, sequence, number } = numbered
      if (!callers.delete(caller) || callers.size > 0 || sequence.window.get(number) !== numbered) return
      sequence.window.delete(number)
      this.#left(numbered)
      this.#forgetUnused(sequence)
    }
  }

  /** Submits the request, and those that waited for it. */
  #execute(first: Numbered): void {
    const { sequence } = first
    for (let numbered: Numbered | undefined = first; numbered !== undefined;) {
      const error = this.#accepted(numbered)
      if (error !== undefined) {
        // A request that was not accepted may be sent again under its number.
        this.#answer(numbered, Result.fail(error))
        if (numbered !== first) this.#left(numbered)
        if (error instanceof SequenceNotFound) this.#forget(sequence)
        else this.#forgetUnused(sequence)
        return
      }
      sequence.startKey ??= numbered.key
      if (CorrelationId.isEnd(numbered.original.parameters)) sequence.hasEnd = true
      if (numbered !== first) this.#left(numbered)
      numbered = sequence.window.advance()
    }
    if (sequence.hasEnd) this.#pass(sequence)
  }

  /** Gives the request to the scheduler. Returns the error if it is refused at once. */
  #accepted(numbered: Numbered): InferenceError | undefined {
    const { sequence, number, original, counts } = numbered
    let isSubmitting = true
    let refusal: InferenceError | undefined
    sequence.executing.set(number, numbered)
    this.#next(
      original,
      (outcome) => {
        sequence.executing.delete(number)
        if (isSubmitting && Result.isFailure(outcome)) refusal = outcome.failure
        else this.#settle(numbered, outcome)
      },
      counts,
    )
    isSubmitting = false
    return refusal
  }

  #settle(numbered: Numbered, outcome: Outcome): void {
    const { sequence, number, key, original } = numbered
    if (this.#sequences.get(sequence.id) === sequence) {
      this.#replies.keep(sequence, { number, key, outcome: original.emit === undefined ? outcome : undefined })
    }
    this.#answer(numbered, outcome)
  }

  #answer({ callers }: Numbered, outcome: Outcome): void {
    const replies = [...callers]
    callers.clear()
    for (const reply of replies) reply(outcome)
  }

  #expire(numbered: Numbered): void {
    const { sequence, number, original } = numbered
    sequence.window.delete(number)
    this.#left(numbered)
    const { expected } = sequence.window
    const message = `${errorPrefix(original)}${this.#name(number, sequence.id)} has waited too long for number ${expected}`
    if (original.deadline !== undefined && original.deadline <= MonotonicTime.millis(this.#clock)) {
      this.#answer(numbered, Result.fail(new DeadlineExceeded({ message })))
    } else if (expected === 1) {
      this.#refer(numbered)
    } else {
      this.#answer(numbered, Result.fail(new QueueTimeout({ message })))
    }
    this.#forgetUnused(sequence)
  }

  /** The request waits no longer. */
  #left(numbered: Numbered): Numbered {
    this.#waiting -= 1
    this.#deadlines.delete(numbered)
    return numbered
  }

  /** Forgets a sequence of which no request was accepted and none waits. */
  #forgetUnused(sequence: Sequence): void {
    if (sequence.window.expected === 1 && sequence.window.isEmpty) this.#forget(sequence)
  }

  #forget(sequence: Sequence): void {
    this.#ended.delete(sequence)
    this.#replies.delete(sequence)
    if (this.#sequences.get(sequence.id) === sequence) this.#sequences.delete(sequence.id)
    this.#pass(sequence)
  }

  /** Passes on what waits for a sequence that takes no further request: the scheduler tells why. */
  #pass({ window }: Sequence): void {
    for (const numbered of window.clear()) {
      this.#left(numbered)
      this.#refer(numbered)
    }
  }

  /** Has the scheduler tell why there is no such sequence. */
  #refer(numbered: Numbered): void {
    this.#next(numbered.original, (outcome) => this.#answer(numbered, outcome), numbered.counts)
  }

  #name(number: number, id: SequenceId): string {
    return `sequence_number ${number} of sequence ${id} of model '${this.#options.model}'`
  }

  #invalid(request: Request, message: string): InvalidRequest {
    return new InvalidRequest({ message: `${errorPrefix(request)}${message}` })
  }

  #full(request: Request): QueueFull {
    const { model, maxWaiting } = this.#options
    const wait = `${maxWaiting} requests of model '${model}' wait for an earlier sequence_number, the maximum`
    const message = `Exceeds maximum queue size: ${wait}. Retry once the earlier request has been sent`
    return new QueueFull({ message: `${errorPrefix(request)}${message}` })
  }

  #different(request: Request, number: number, id: SequenceId): InvalidRequest {
    return this.#invalid(request, `${this.#name(number, id)} was sent before with other inputs`)
  }
}
