/**
 * The queue of a model with sequences. A START gives its sequence a slot (Lane.ts), or a place in the backlog until one
 * is free. The requests of a sequence are executed one by one, in their order. Pure: time is an argument.
 *
 *   START ─┬─ a slot is free ──► slot ──┬─ END has been executed ──────────────────► slot is free ─► first of backlog
 *          └─ none ─► backlog ──────────┤
 *                       └─ timeout      ├─ idle for `maxIdle` after its last response ─► expired
 *                                       └─ a request is cancelled ──────────────────► it and those behind it leave
 *
 * LiveSequences.ts has the sequences, SequenceRequests.ts their requests, SequenceMoves.ts their exports and imports.
 */
import { Cancelled, type InferenceError, ModelNotReady, QueueTimeout } from "../error/InferenceError.ts"
import type { Instance } from "../instance/Instance.ts"
import type { SequenceCounts } from "../metrics/SequenceCounts.ts"
import * as IdleLimit from "../request/IdleLimit.ts"
import type { Request } from "../request/Request.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import { type Decision, empty, type Queue, type TimedQueue } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import type { MovableSequences } from "../transfer/MovableSequences.ts"
import * as CorrelationId from "./CorrelationId.ts"
import type { Lane } from "./Lane.ts"
import * as LaneStrategy from "./LaneStrategy.ts"
import { LiveSequences, type LiveSequencesOptions } from "./LiveSequences.ts"
import { SequenceMoves, type SequenceMovesOptions } from "./SequenceMoves.ts"
import { backlogProblem, type RequestCheck, requestProblem, sequenceNotFound } from "./SequenceProblem.ts"
import { SequenceRequests } from "./SequenceRequests.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export interface SequenceQueueOptions
  extends LiveSequencesOptions, SequenceMovesOptions, LaneStrategy.LaneStrategyOptions {
  readonly instances: ReadonlyArray<Instance>
  readonly maxQueueSize: number
  readonly warn: (message: string) => void
}

export class SequenceQueue implements Queue, TimedQueue {
  readonly timed = this
  readonly movable: MovableSequences
  readonly #options: SequenceQueueOptions
  readonly #live: LiveSequences
  readonly #requests = new SequenceRequests()
  readonly #check: RequestCheck

  constructor(options: SequenceQueueOptions) {
    this.#options = options
    this.#live = new LiveSequences(
      options,
      LaneStrategy.make(options, (queued) => this.#issued(queued)),
    )
    const { model, sequencing, ended } = options
    this.#check = {
      model,
      sequencing,
      ended,
      isLive: (id) => this.#live.get(id) !== undefined,
      isStopping: () => this.#live.isStopping,
    }
    this.movable = new SequenceMoves(options, this.#live, this.#requests)
    this.replaceInstances(options.instances)
  }

  /** Whether each instance has requests that no other may execute. */
  get isPinned(): boolean {
    return this.#options.sequencing.strategy._tag !== "free"
  }

  get size(): number {
    return this.#requests.queued
  }

  /** Requests of sequences that wait for a slot. */
  get backlogged(): number {
    return this.#live.backlog.requests
  }

  get oldest(): number | undefined {
    return this.#requests.oldest
  }

  get expiresAt(): number {
    return this.#live.expiresAt
  }

  counts(now: number): SequenceCounts {
    return this.#live.counts(now)
  }

  /** Why a request cannot belong to any sequence; undefined if it can. */
  refusal(request: Request): InferenceError | undefined {
    return requestProblem(this.#check, request)
  }

  offer(queued: QueuedRequest): boolean {
    const { maxQueueSize, sequencing } = this.#options
    if (this.size >= maxQueueSize) return false
    const { parameters } = queued.request
    const given = CorrelationId.idOf(parameters)
    const id = given ?? this.#live.unusedId()
    const isStart = given === undefined || CorrelationId.isStart(parameters)
    this.#live.now = queued.queuedAt
    const run = this.#live.get(id) ?? this.#live.begin(id, queued.queuedAt)
    if (run === undefined) return false
    if (isStart) this.#start(run)
    run.maxIdle = IdleLimit.read(parameters) ?? run.maxIdle
    const isEnd = CorrelationId.isEnd(parameters) && !sequencing.isIterative
    queued.request = {
      ...queued.request,
      sequence: { id, isStart, isEnd, isReady: true, state: run.memory, returned: undefined },
    }
    this.#append(run, queued)
    if (isEnd) this.#live.forget(run, "ended")
    return true
  }

  fullReason({ parameters }: Request): string | undefined {
    const { model, maxQueueSize, sequencing } = this.#options
    const id = CorrelationId.idOf(parameters)
    const continues = id !== undefined && this.#live.get(id) !== undefined
    if (this.size >= maxQueueSize || continues || this.#live.hasRoom) return undefined
    return backlogProblem(model, sequencing)
  }

  /** Ends a sequence without a further request. Its waiting requests are executed before. */
  close(id: SequenceId): void {
    const run = this.#live.get(id)
    if (run !== undefined) this.#live.end(run, "ended")
  }

  /** Requests of one sequence have their order, so none is executed again ahead of others. */
  retry(): void {
    throw new Error("A model with sequences executes no batch again. This is a bug.")
  }

  get canResume(): boolean {
    return this.#options.sequencing.isIterative
  }

  /** An executed request goes on: it is queued again, behind the other requests of its sequence. */
  resume(queued: QueuedRequest, now: number): InferenceError | undefined {
    const run = this.#requests.runOf(queued)
    const { sequence } = queued.request
    if (run === undefined || queued.done || sequence === undefined) return new Cancelled({ message: "" })
    if (run.end !== undefined) {
      const { model, ended } = this.#options
      return sequenceNotFound(model, run.id, ended.get(run.id))
    }
    queued.queuedAt = now
    queued.request = { ...queued.request, sequence: { ...sequence, isStart: false, isEnd: false, returned: undefined } }
    run.issued = undefined
    this.#append(run, queued)
    return undefined
  }

  remove(queued: QueuedRequest): void {
    const run = this.#requests.runOf(queued)
    if (run === undefined) return
    if (run.issued === queued) {
      run.lane?.withdraw(queued)
      this.#requests.leave(queued)
      return this.#completed(run, queued, queued.queuedAt)
    }
    // A sequence has no gaps: with a request, those behind it leave too, and in the backlog all of them.
    const from = run.lane === undefined ? 0 : run.waiting.indexOf(queued)
    const leaving = this.#requests.takeWaiting(run, from)
    this.#live.end(run, "cancelled")
    const message = `another request of sequence ${String(run.id)} to model '${this.#options.model}' was cancelled`
    for (const one of leaving) {
      if (one !== queued) this.#options.refuse(one, "CANCELED", new Cancelled({ message }))
    }
  }

  isReady(now: number, instance?: Instance): boolean {
    return this.#laneOf(instance)?.isReady(now) === true
  }

  decide(now: number, instance?: Instance): Decision {
    this.expire(now)
    const decision = this.#laneOf(instance)?.decide(now) ?? empty
    if (decision._tag === "Take") this.#requests.take(decision.requests)
    return decision
  }

  /** A batch has ended: the next requests of its sequences may follow. */
  ended(requests: ReadonlyArray<QueuedRequest>, now: number, instance?: Instance): void {
    this.#live.now = now
    const lane = this.#laneOf(instance)
    lane?.ended()
    for (const queued of requests) {
      const run = this.#requests.runOf(queued)
      // A request that goes on is queued already.
      if (run === undefined || queued.running === undefined) continue
      this.#requests.end(queued)
      this.#completed(run, queued, now)
    }
    if (lane !== undefined) this.#live.lanes.vacate(lane)
  }

  /** Ends the sequences that were idle for too long, or that waited for a slot beyond their timeout. */
  expire(now: number): void {
    this.#live.now = now
    this.#live.expireIdle(now)
    for (const run of this.#live.backlog.expired(now)) this.#timeOut(run)
  }

  clear(): Array<QueuedRequest> {
    const queued = this.#requests.all()
    const runs = this.#all()
    // All at once, so that no freed slot goes to a sequence that leaves as well.
    for (const run of runs) this.#requests.takeAll(run)
    for (const run of runs) this.#live.end(run, "stopped")
    return queued
  }

  /** New sequences have slots of these instances only. Sequences of the others keep theirs to their end. */
  replaceInstances(instances: ReadonlyArray<Instance>): void {
    this.#live.replaceInstances(this.isPinned ? instances : [undefined])
  }

  /** Calls `done` once no sequence needs this instance any more, perhaps before this returns. */
  vacated(instance: Instance, done: () => void): void {
    this.#live.lanes.whenVacated(instance, done)
  }

  endSequences(done: () => void): void {
    this.#live.stop(done)
  }

  retire(): void {
    this.#live.retire()
  }

  /** Ends the sequences of an instance that will never execute them. */
  instanceFailed(instance: Instance): void {
    const lane = this.#live.lanes.of(instance)
    if (lane === undefined || !lane.isOpen) return
    lane.isOpen = false
    const message = `the instance of model '${this.#options.model}' that has this sequence is not running`
    for (const run of this.#all()) {
      if (run.lane !== lane) continue
      const waiting = this.#requests.takeAll(run)
      this.#live.end(run, "failed")
      for (const queued of waiting) this.#options.refuse(queued, "OTHER", new ModelNotReady({ message }))
    }
  }

  /** All sequences that are not over. */
  #all(): ReadonlySet<SequenceRun> {
    return new Set([...this.#live.runs(), ...this.#requests.runs()])
  }

  /** A START within a sequence that has not ended: its requests so far go on, and the state begins anew. */
  #start(run: SequenceRun): void {
    if (!run.isStarted) {
      run.isStarted = true
      return
    }
    this.#options.warn(
      `sequence ${String(run.id)} for model '${this.#options.model}' has a conflict. The previous sequence did not end ` +
        "before this sequence start. Previous sequence will be terminated early.",
    )
    this.#live.restart(run)
  }

  #append(run: SequenceRun, queued: QueuedRequest): void {
    this.#requests.add(queued, run)
    this.#live.busy(run)
    if (run.lane !== undefined) return run.lane.add(run, queued)
    run.waiting.push(queued)
    this.#live.backlog.limit(run, queued)
  }

  /** The request may be part of a batch from now on. */
  #issued(queued: QueuedRequest): void {
    const run = this.#requests.runOf(queued)
    const { sequence } = queued.request
    if (run === undefined || sequence === undefined) return
    run.issued = queued
    run.endBefore(sequence.state)
    // The row of its last batch is free for the next batch.
    if (sequence.isEnd && this.#options.sequencing.strategy._tag === "direct") this.#live.leaveSlot(run)
  }

  /** The issued request of the sequence has ended, or has left. */
  #completed(run: SequenceRun, queued: QueuedRequest, now: number): void {
    run.issued = undefined
    if (run.memory.isTooLarge && queued.request.sequence?.state === run.memory) return this.#loseState(run)
    if (this.#options.sequencing.isIterative && run.waiting.length === 0) {
      this.#live.forget(run, queued.isCancelled ? "cancelled" : "ended")
    }
    if (run.held !== undefined) return run.held.quiet()
    this.#live.goOn(run, now)
  }

  /** Refuses the waiting requests of a sequence whose state was too large. */
  #loseState(run: SequenceRun): void {
    const waiting = this.#requests.takeAll(run)
    this.#live.end(run, "tooLarge")
    for (const queued of waiting) {
      const error = this.refusal(queued.request) ?? new Cancelled({ message: "" })
      this.#options.refuse(queued, "OTHER", error)
    }
  }

  /** Ends a sequence that has waited for a slot beyond its timeout. */
  #timeOut(run: SequenceRun): void {
    const waiting = this.#requests.takeAll(run)
    this.#live.end(run, "cancelled")
    const message = "timeout of the corresponding sequence has been expired"
    for (const queued of waiting) this.#options.refuse(queued, "REJECTED", new QueueTimeout({ message }))
  }

  #laneOf(instance: Instance | undefined): Lane | undefined {
    return this.#live.lanes.of(this.isPinned ? instance : undefined)
  }
}
