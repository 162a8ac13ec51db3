/**
 * The queue of a model with sequences. A START gives its sequence a slot (Lane.ts), or a place in the backlog until one
 * is free. The requests of a sequence are executed one by one, in their order. Pure: time is an argument.
 *
 *   START ─┬─ a slot is free ──► slot ──┬─ END has been executed ──────────────────► slot is free ─► first of backlog
 *          └─ none ─► backlog ──────────┤
 *                       └─ timeout      ├─ idle for `maxIdle` after its last response ─► expired
 *                                       └─ a request is cancelled ──────────────────► it and those behind it leave
 */
import {
  AlreadyExists,
  Cancelled,
  ExecutionFailed,
  type InferenceError,
  InvalidRequest,
  ModelNotReady,
  QueueFull,
  QueueTimeout,
} from "../error/InferenceError.ts"
import { stopping } from "../error/Refusal.ts"
import type { Instance } from "../instance/Instance.ts"
import type { FailureReason } from "../metrics/ModelStatistics.ts"
import { type SequenceCounts, SequenceCounter } from "../metrics/SequenceCounts.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request } from "../request/Request.ts"
import type { SequenceEnd, SequenceId } from "../request/SequencePosition.ts"
import { type Decision, earliest, empty, type Queue, type TimedQueue } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { Backlog } from "./Backlog.ts"
import * as CorrelationId from "./CorrelationId.ts"
import { DirectLane } from "./DirectLane.ts"
import type { EndedSequences } from "./EndedSequences.ts"
import { HeldSequence } from "./HeldSequence.ts"
import { IdleSequences } from "./IdleSequences.ts"
import type { Lane } from "./Lane.ts"
import { Lanes } from "./Lanes.ts"
import { OldestLane } from "./OldestLane.ts"
import { SequenceMemory, StateBudget } from "./SequenceMemory.ts"
import type { MovableSequences } from "../transfer/MovableSequences.ts"
import { idProblem, requestProblem, sequenceNotFound } from "./SequenceProblem.ts"
import { SequenceRun } from "./SequenceRun.ts"
import type { SequenceExport, SequenceSnapshot } from "../request/SequenceExport.ts"
import { fingerprint, format, modelProblem, tensorsProblem } from "../transfer/SequenceTransfer.ts"
import * as StateKey from "./StateKey.ts"

export interface SequenceQueueOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly sequencing: Sequencing
  readonly instances: ReadonlyArray<Instance>
  /** Where ended sequences are remembered. */
  readonly ended: EndedSequences
  readonly maxQueueSize: number
  /** Whether tensors have a batch dimension. */
  readonly batches: boolean
  /** Requests share a batch only where this agrees. */
  readonly groupKey: (request: Request) => string
  /** A row of a batch that has no request, alike in shapes to this request. */
  readonly emptyRow: (like: Request) => Request
  /** Makes the queue of the requests that may be executed now. */
  readonly makeQueue: () => Queue
  /** Ends a request that leaves with its sequence. */
  readonly refuse: (queued: QueuedRequest, reason: FailureReason, error: InferenceError) => void
  readonly warn: (message: string) => void
  /** A sequence is over, and no other one has its id. */
  readonly onOver?: ((id: SequenceId) => void) | undefined
}

export class SequenceQueue implements Queue, TimedQueue, MovableSequences {
  readonly timed = this
  readonly movable = this
  readonly #options: SequenceQueueOptions
  readonly #budget: StateBudget
  /** Sequences that take further requests, by id. */
  readonly #runs = new Map<SequenceId, SequenceRun>()
  /** Sequences of all requests that have not ended. */
  readonly #places = new Map<QueuedRequest, SequenceRun>()
  /** Sequences that wait for a slot, in their order. */
  readonly #backlog = new Backlog()
  readonly #idle: IdleSequences
  readonly #ended: EndedSequences
  readonly #counter = new SequenceCounter()
  readonly #lanes: Lanes
  /** Set once no further sequence is taken; called when the last one is over. */
  #onEmpty: (() => void) | undefined
  #size = 0
  /** The last id that was given to a request without one. */
  #lastId = 0n
  /** The latest time that the queue has been told. */
  #now = 0

  constructor(options: SequenceQueueOptions) {
    this.#options = options
    this.#ended = options.ended
    this.#budget = new StateBudget(options.sequencing)
    this.#idle = new IdleSequences(options.sequencing.maxIdle)
    this.#lanes = new Lanes(this.#laneMaker())
    this.replaceInstances(options.instances)
  }

  /** Whether each instance has requests that no other may execute. */
  get isPinned(): boolean {
    return this.#options.sequencing.strategy._tag !== "free"
  }

  get size(): number {
    return this.#size
  }

  /** Requests of sequences that wait for a slot. */
  get backlogged(): number {
    return this.#backlog.requests
  }

  get oldest(): number | undefined {
    if (this.#size === 0) return undefined
    const oldest = earliest(
      [...this.#places.keys()].filter(({ running }) => running === undefined),
      Infinity,
    )
    return oldest === Infinity ? undefined : oldest
  }

  get expiresAt(): number {
    return Math.min(this.#idle.earliest, this.#backlog.expiresAt)
  }

  counts(now: number): SequenceCounts {
    let oldestNanos = 0
    // The first one was the first to start.
    for (const { startedAt } of this.#runs.values()) {
      oldestNanos = now - startedAt
      break
    }
    return this.#counter.counts({
      live: this.#lanes.live,
      backlog: this.#backlog.size,
      oldestNanos,
      stateBytes: this.#budget.bytes,
    })
  }

  /** Why a request cannot belong to any sequence; undefined if it can. */
  refusal(request: Request): InferenceError | undefined {
    const { model, sequencing } = this.#options
    return requestProblem({
      model,
      sequencing,
      request,
      isLive: (id) => this.#runs.has(id),
      ended: this.#ended,
      isStopping: this.#onEmpty !== undefined,
    })
  }

  offer(queued: QueuedRequest): boolean {
    const { maxQueueSize, sequencing } = this.#options
    if (this.#size >= maxQueueSize) return false
    const { parameters } = queued.request
    const given = CorrelationId.idOf(parameters)
    const id = given ?? this.#nextId()
    const isStart = given === undefined || CorrelationId.isStart(parameters)
    this.#now = queued.queuedAt
    const run = this.#runs.get(id) ?? this.#begin(id, queued.queuedAt)
    if (run === undefined) return false
    if (isStart) this.#start(run)
    const isEnd = CorrelationId.isEnd(parameters) && !sequencing.isIterative
    queued.request = {
      ...queued.request,
      sequence: { id, isStart, isEnd, isReady: true, state: run.memory },
    }
    this.#size += 1
    this.#append(run, queued)
    if (isEnd) this.#forget(run, "ended")
    return true
  }

  /** Ends a sequence without a further request. Its waiting requests are executed before. */
  close(id: SequenceId): void {
    const run = this.#runs.get(id)
    if (run === undefined) return
    this.#forget(run, "ended")
    if (run.issued === undefined && run.waiting.length === 0) this.#release(run)
  }

  /** Requests of one sequence have their order, so none is executed again ahead of others. */
  retry(): void {
    throw new Error("A model with sequences executes no batch again. This is a bug.")
  }

  get canResume(): boolean {
    return this.#options.sequencing.isIterative
  }

  /** An executed request goes on: it is queued again, behind the other requests of its sequence. */
  resume(queued: QueuedRequest, now: number): boolean {
    const run = this.#places.get(queued)
    if (run === undefined || queued.done || run.end !== undefined || queued.request.sequence === undefined) return false
    queued.queuedAt = now
    queued.request = {
      ...queued.request,
      sequence: { ...queued.request.sequence, isStart: false, isEnd: false },
    }
    run.issued = undefined
    this.#size += 1
    this.#append(run, queued)
    return true
  }

  remove(queued: QueuedRequest): void {
    const run = this.#places.get(queued)
    if (run === undefined) return
    if (run.issued === queued) {
      run.lane?.withdraw(queued)
      this.#size -= 1
      return this.#completed(run, queued, queued.queuedAt)
    }
    // A sequence has no gaps: with a request, those behind it leave too, and in the backlog all of them.
    const from = run.lane === undefined ? 0 : run.waiting.indexOf(queued)
    const leaving = run.waiting.splice(from)
    for (const one of leaving) this.#leave(one)
    this.#end(run, "cancelled")
    for (const one of leaving) {
      if (one !== queued) this.#options.refuse(one, "CANCELED", new Cancelled({ message: "" }))
    }
  }

  isReady(now: number, instance?: Instance): boolean {
    return this.#laneOf(instance)?.isReady(now) === true
  }

  decide(now: number, instance?: Instance): Decision {
    this.expire(now)
    const decision = this.#laneOf(instance)?.decide(now) ?? empty
    if (decision._tag === "Take") for (const queued of decision.requests) if (!queued.isEmpty) this.#size -= 1
    return decision
  }

  /** A batch has ended: the next requests of its sequences may follow. */
  ended(requests: ReadonlyArray<QueuedRequest>, now: number, instance?: Instance): void {
    this.#now = now
    this.#laneOf(instance)?.ended()
    for (const queued of requests) {
      const run = this.#places.get(queued)
      // A request that goes on is queued already.
      if (run !== undefined && queued.running !== undefined) this.#completed(run, queued, now)
    }
  }

  /** Ends the sequences that were idle for too long, or that waited for a slot beyond their timeout. */
  expire(now: number): void {
    this.#now = now
    for (let run = this.#idle.take(now); run !== undefined; run = this.#idle.take(now)) {
      this.#forget(run, "expired")
      this.#release(run)
    }
    for (const run of this.#backlog.expired(now)) this.#timeOut(run)
  }

  clear(): Array<QueuedRequest> {
    const queued = [...this.#places.keys()].filter(({ running }) => running === undefined)
    const runs = this.#all()
    // All at once, so that no freed slot goes to a sequence that leaves as well.
    for (const run of runs) this.#takeWaiting(run)
    for (const run of runs) this.#end(run, "stopped")
    return queued
  }

  /** New sequences have slots of these instances only. Sequences of the others keep theirs to their end. */
  replaceInstances(instances: ReadonlyArray<Instance>): void {
    for (const lane of this.#lanes.replace(this.isPinned ? instances : [undefined])) this.#promote(lane)
  }

  /** Calls `done` once no sequence needs this instance any more, perhaps before this returns. */
  vacated(instance: Instance, done: () => void): void {
    this.#lanes.whenVacated(instance, done)
  }

  endSequences(done: () => void): void {
    this.#onEmpty ??= done
    this.#checkEmpty()
  }

  /** Ends the sequences of an instance that will never execute them. */
  instanceFailed(instance: Instance): void {
    const lane = this.#lanes.of(instance)
    if (lane === undefined || !lane.isOpen) return
    lane.isOpen = false
    const message = `the instance of model '${this.#options.model}' that has this sequence is not running`
    for (const run of this.#all()) {
      if (run.lane !== lane) continue
      const waiting = this.#takeWaiting(run)
      this.#end(run, "failed")
      for (const queued of waiting) this.#options.refuse(queued, "OTHER", new ModelNotReady({ message }))
    }
  }

  ids(limit: number): ReadonlyArray<SequenceId> {
    return this.#runs.keys().take(limit).toArray()
  }

  get moveProblem(): InferenceError | undefined {
    return modelProblem(this.#options.model, this.#options.sequencing)
  }

  get exportHead(): Omit<SequenceExport, "sequences"> {
    const { model, sequencing, batches } = this.#options
    return { format, model, states: fingerprint(sequencing, batches) }
  }

  hold(ids: Iterable<SequenceId> = this.#runs.keys()): ReadonlyArray<HeldSequence> {
    const held: Array<HeldSequence> = []
    for (const id of ids) {
      const run = this.#runs.get(id)
      if (run === undefined || run.isHeld || run.lane === undefined || run.memory.isPrivate) continue
      if (run.waiting.some(startsSequence)) continue
      this.#idle.delete(run)
      const hold = new HeldSequence(run, {
        moved: (run) => this.#moved(run),
        goesOn: (run, now) => {
          if (run.issued === undefined) this.#goOn(run, now)
        },
      })
      run.held = hold
      held.push(hold)
    }
    return held
  }

  adopt({ id, ageNanos, tensors }: SequenceSnapshot, now: number): InferenceError | undefined {
    const { model, sequencing, batches } = this.#options
    this.#now = now
    if (this.#onEmpty !== undefined) return stopping()
    const problem = idProblem(model, sequencing, id)
    if (problem !== undefined) return new InvalidRequest({ message: problem })
    if (this.#runs.has(id)) return new AlreadyExists({ message: `sequence ${id} of model '${model}' is live` })
    const unfit = tensors && tensorsProblem(tensors, sequencing.states, batches)
    if (unfit !== undefined) return new InvalidRequest({ message: `sequence ${id} of model '${model}' ${unfit}` })
    if (!this.#hasRoom()) return new QueueFull({ message: `model '${model}' has no room for sequence ${id}` })
    const memory = new SequenceMemory(this.#budget)
    if (tensors !== undefined && !memory.keep(tensors, false)) {
      return new ExecutionFailed({ message: `the state of sequence ${id} exceeds a limit of model '${model}'` })
    }
    const run = this.#begin(id, now - ageNanos, memory)
    if (run === undefined) return new QueueFull({ message: `model '${model}' has no room for sequence ${id}` })
    run.isStarted = true
    if (run.lane !== undefined) this.#idle.add(run, now)
    return undefined
  }

  /** Ends a sequence that has been exported. */
  #moved(run: SequenceRun): void {
    const start = run.waiting.findIndex(startsSequence)
    const leaving = start < 0 ? this.#takeWaiting(run) : run.waiting.splice(0, start)
    if (start < 0) {
      // A waiting END is not executed here.
      if (run.end !== undefined) this.#ended.add(run.id, { reason: "moved", idleMillis: undefined })
      this.#end(run, "moved")
    } else {
      // The id has begun another sequence, which goes on here.
      for (const queued of leaving) this.#leave(queued)
      run.lane?.advance(run)
    }
    const { model } = this.#options
    for (const queued of leaving) {
      this.#options.refuse(queued, "OTHER", sequenceNotFound(model, run.id, { reason: "moved", idleMillis: undefined }))
    }
  }

  /** All sequences that are not over. */
  #all(): ReadonlySet<SequenceRun> {
    return new Set([...this.#runs.values(), ...this.#places.values()])
  }

  #nextId(): bigint {
    do this.#lastId += 1n
    while (this.#runs.has(this.#lastId))
    return this.#lastId
  }

  /** A new sequence, in a slot or in the backlog; undefined if that is full. */
  #begin(id: SequenceId, now: number, memory = new SequenceMemory(this.#budget)): SequenceRun | undefined {
    const lane = this.#lanes.free
    if (lane === undefined && !this.#hasBacklog) return undefined
    const run = new SequenceRun(id, now, memory)
    this.#runs.set(id, run)
    if (lane?.free === undefined) this.#backlog.add(run)
    else lane.enter(run, lane.free)
    return run
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
    run.restart(new SequenceMemory(this.#budget))
  }

  #append(run: SequenceRun, queued: QueuedRequest): void {
    this.#places.set(queued, run)
    this.#idle.delete(run)
    run.waiting.push(queued)
    if (run.lane !== undefined) return run.lane.advance(run)
    this.#backlog.limit(run, queued)
  }

  /** The issued request of the sequence has ended, or has left. */
  #completed(run: SequenceRun, queued: QueuedRequest, now: number): void {
    this.#places.delete(queued)
    run.issued = undefined
    if (run.memory.isTooLarge && queued.request.sequence?.state === run.memory) return this.#loseState(run)
    if (this.#options.sequencing.isIterative && run.waiting.length === 0) {
      this.#forget(run, queued.isCancelled ? "cancelled" : "ended")
    }
    if (run.held !== undefined) return run.held.quiet()
    this.#goOn(run, now)
  }

  /** After a request: the next one, the end or idleness. */
  #goOn(run: SequenceRun, now: number): void {
    if (run.waiting.length > 0) run.lane?.advance(run)
    else if (run.end !== undefined) this.#release(run)
    else this.#idle.add(run, now)
  }

  /** Refuses the waiting requests of a sequence whose state was too large. */
  #loseState(run: SequenceRun): void {
    const waiting = this.#takeWaiting(run)
    this.#end(run, "tooLarge")
    for (const queued of waiting) {
      const error = this.refusal(queued.request) ?? new Cancelled({ message: "" })
      this.#options.refuse(queued, "OTHER", error)
    }
  }

  /** Takes out all requests of the sequence that are not executing. */
  #takeWaiting(run: SequenceRun): ReadonlyArray<QueuedRequest> {
    const waiting = run.waiting.splice(0)
    const { issued } = run
    if (issued !== undefined && issued.running === undefined) {
      run.lane?.withdraw(issued)
      run.issued = undefined
      waiting.unshift(issued)
    }
    for (const queued of waiting) this.#leave(queued)
    return waiting
  }

  /** Ends a sequence: now, or after the requests that it still has. */
  #end(run: SequenceRun, reason: SequenceEnd): void {
    this.#forget(run, reason)
    if (run.issued === undefined && run.waiting.length === 0) this.#release(run)
  }

  #leave(queued: QueuedRequest): void {
    this.#places.delete(queued)
    this.#size -= 1
  }

  /** No further request joins the sequence. */
  #forget(run: SequenceRun, end: SequenceEnd): void {
    // A request of END may leave before its execution.
    if (run.end === undefined || (run.end === "ended" && end !== "ended")) {
      const idleMillis = end === "expired" ? this.#options.sequencing.maxIdle / 1e6 : undefined
      this.#ended.add(run.id, { reason: end, idleMillis })
      run.end = end
    }
    if (this.#runs.get(run.id) === run) this.#runs.delete(run.id)
  }

  /** The sequence is over: its slot is free for the next one. */
  #release(run: SequenceRun): void {
    this.#backlog.delete(run)
    this.#idle.delete(run)
    this.#counter.ended(run.end ?? "ended")
    const { held } = run
    run.held = undefined
    held?.quiet()
    run.endState()
    this.#leaveSlot(run)
    if (!this.#runs.has(run.id)) this.#options.onOver?.(run.id)
    this.#checkEmpty()
  }

  /** Gives the free slots of the lane to the sequences that have waited longest. */
  #promote(lane: Lane): void {
    for (let run = this.#backlog.first; run !== undefined; run = this.#backlog.first) {
      const slot = lane.free
      if (slot === undefined) return
      this.#backlog.delete(run)
      lane.enter(run, slot)
      // An imported sequence may have no request yet.
      this.#goOn(run, this.#now)
    }
  }

  #timeOut(run: SequenceRun): void {
    const waiting = this.#takeWaiting(run)
    this.#end(run, "cancelled")
    const message = "timeout of the corresponding sequence has been expired"
    for (const queued of waiting) this.#options.refuse(queued, "REJECTED", new QueueTimeout({ message }))
  }

  get #hasBacklog(): boolean {
    return this.#backlog.size < this.#options.sequencing.maxBacklog
  }

  #hasRoom(): boolean {
    return this.#hasBacklog || this.#lanes.free !== undefined
  }

  #laneOf(instance: Instance | undefined): Lane | undefined {
    return this.#lanes.of(this.isPinned ? instance : undefined)
  }

  #laneMaker(): (instance: Instance | undefined) => Lane {
    const { sequencing, groupKey, emptyRow, makeQueue } = this.#options
    const { strategy } = sequencing
    const stateKey = StateKey.make(sequencing)
    const keyOf = ({ request }: QueuedRequest) => `${groupKey(request)}${stateKey(request)}`
    const onIssued = (queued: QueuedRequest) => this.#issued(queued)
    return (instance) =>
      strategy._tag === "direct" && instance !== undefined
        ? new DirectLane(instance, { ...strategy, keyOf, emptyRow, onIssued })
        : new OldestLane(instance, { slots: strategy.slots, queue: makeQueue(), keyOf, onIssued })
  }

  #issued(queued: QueuedRequest): void {
    const run = this.#places.get(queued)
    const { sequence } = queued.request
    if (run === undefined || sequence === undefined) return
    run.issued = queued
    run.endBefore(sequence.state)
    // The row of its last batch is free for the next batch.
    if (sequence.isEnd && this.#options.sequencing.strategy._tag === "direct") this.#leaveSlot(run)
  }

  #leaveSlot(run: SequenceRun): void {
    const { lane } = run
    if (lane === undefined) return
    lane.leave(run)
    this.#promote(lane)
    this.#lanes.vacate(lane)
  }

  #checkEmpty(): void {
    if (this.#onEmpty !== undefined && this.#lanes.live + this.#backlog.size === 0) this.#onEmpty()
  }
}

const startsSequence = ({ request }: QueuedRequest): boolean => request.sequence?.isStart === true
