/**
 * The sequences of a model that are not over: each has a slot of a lane, or waits for one in the backlog. Begins and
 * ends them; SequenceQueue.ts has the order of their requests.
 */
import type { Instance } from "../instance/Instance.ts"
import { type SequenceCounts, SequenceCounter } from "../metrics/SequenceCounts.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import { randomId, type SequenceId } from "../request/SequencePosition.ts"
import { Backlog } from "./Backlog.ts"
import type { EndedSequences, FinalEnd } from "./EndedSequences.ts"
import { IdleSequences } from "./IdleSequences.ts"
import type { Lane } from "./Lane.ts"
import { Lanes } from "./Lanes.ts"
import { SequenceMemory, StateBudget } from "./SequenceMemory.ts"
import { SequenceRun } from "./SequenceRun.ts"

export interface LiveSequencesOptions {
  readonly sequencing: Sequencing
  /** Where ended sequences are remembered. */
  readonly ended: EndedSequences
  /** A sequence is over, and no other one has its id. */
  readonly onOver?: ((id: SequenceId) => void) | undefined
}

export class LiveSequences {
  readonly #options: LiveSequencesOptions
  readonly #budget: StateBudget
  /** Sequences that take further requests, by id. */
  readonly #runs = new Map<SequenceId, SequenceRun>()
  /** Sequences that wait for a slot, in their order. */
  readonly backlog = new Backlog()
  readonly lanes: Lanes
  /** The one that has begun or was found last, while it takes further requests. */
  #found: SequenceRun | undefined
  readonly #idle: IdleSequences
  readonly #counter = new SequenceCounter()
  /** Set once no further sequence is taken; called when the last one is over. */
  #onEmpty: (() => void) | undefined
  /** The low half of the last id that was given to a request without one. */
  #lastId = 0n
  #isRetired = false
  /** The latest time that the queue knows. */
  now = 0

  constructor(options: LiveSequencesOptions, makeLane: (instance: Instance | undefined) => Lane) {
    this.#options = options
    this.#budget = new StateBudget(options.sequencing)
    this.#idle = new IdleSequences(options.sequencing.maxIdle)
    this.lanes = new Lanes(makeLane)
  }

  /** When the first one expires or gives up; infinite if none does. */
  get expiresAt(): number {
    return Math.min(this.#idle.earliest, this.backlog.expiresAt)
  }

  counts(now: number): SequenceCounts {
    let oldestNanos = 0
    // The first one was the first to start.
    for (const { startedAt } of this.#runs.values()) {
      oldestNanos = now - startedAt
      break
    }
    return this.#counter.counts({
      live: this.lanes.live,
      backlog: this.backlog.size,
      oldestNanos,
      stateBytes: this.#budget.bytes,
    })
  }

  /** Sequences that take further requests, the oldest first. */
  runs(): Iterable<SequenceRun> {
    return this.#runs.values()
  }

  /** Ids of these sequences. */
  ids(): MapIterator<SequenceId> {
    return this.#runs.keys()
  }

  /** The sequence that takes further requests of this id. */
  get(id: SequenceId): SequenceRun | undefined {
    // Twice for each request, with the same id. The table takes a while to find a bigint.
    const found = this.#found
    if (found?.id === id) return found
    return (this.#found = this.#runs.get(id))
  }

  /**
   * An id for a request without one. A caller that guessed it would join the sequence, so its high half is random. Its
   * low half, all that a control of 32 bits has, is that of no other live request.
   */
  unusedId(): bigint {
    for (;;) {
      this.#lastId = BigInt.asUintN(32, this.#lastId + 1n)
      const id = ((randomId() >> 32n) << 32n) | this.#lastId
      if (id !== 0n && !this.#runs.has(id)) return id
    }
  }

  /** Whether a new sequence would have a slot, or a place in the backlog. */
  get hasRoom(): boolean {
    return this.backlog.size < this.#options.sequencing.maxBacklog || this.lanes.free !== undefined
  }

  /** Memory for the state of one sequence, within the limits of the model. */
  memory(): SequenceMemory {
    return new SequenceMemory(this.#budget)
  }

  /** A new sequence, in a slot or in the backlog; undefined if that is full. */
  begin(id: SequenceId, startedAt: number, memory = this.memory()): SequenceRun | undefined {
    const lane = this.lanes.free
    if (lane === undefined && this.backlog.size >= this.#options.sequencing.maxBacklog) return undefined
    const run = new SequenceRun(id, startedAt, memory)
    this.#runs.set(id, run)
    this.#found = run
    if (lane?.free === undefined) this.backlog.add(run)
    else lane.enter(run, lane.free)
    return run
  }

  /** The state begins anew with the next request, under the same id and in the same slot. */
  restart(run: SequenceRun): void {
    run.restart(this.memory())
    run.maxIdle = undefined
    this.#counter.ended("replaced")
  }

  /** The sequence has a request, or is being exported: it does not expire. */
  busy(run: SequenceRun): void {
    this.#idle.delete(run)
  }

  /** The sequence is idle from now on. */
  idle(run: SequenceRun, now: number): void {
    this.#idle.add(run, now)
  }

  /** After a request: the next one, the end or idleness. */
  goOn(run: SequenceRun, now: number): void {
    if (run.waiting.length > 0) run.lane?.advance(run)
    else if (run.end !== undefined) this.release(run)
    else this.idle(run, now)
  }

  /** No further request joins the sequence. */
  forget(run: SequenceRun, end: FinalEnd): void {
    const { ended, sequencing } = this.#options
    // A request of END may leave before its execution.
    if (run.end === undefined || (run.end === "ended" && end !== "ended")) {
      const idleMillis = end === "expired" ? (run.maxIdle ?? sequencing.maxIdle) / 1e6 : undefined
      // The id may be that of a sequence of the next version by now.
      if (!this.#isRetired) ended.add(run.id, { reason: end, idleMillis })
      run.end = end
    }
    if (this.#runs.get(run.id) === run) this.#runs.delete(run.id)
    this.#found = undefined
  }

  /** Ends a sequence: now, or after the requests that it still has. */
  end(run: SequenceRun, reason: FinalEnd): void {
    this.forget(run, reason)
    if (run.issued === undefined && run.waiting.length === 0) this.release(run)
  }

  /** The sequence is over: its slot is free for the next one. */
  release(run: SequenceRun): void {
    this.backlog.delete(run)
    this.#idle.delete(run)
    this.#counter.ended(run.end ?? "ended")
    const { held } = run
    run.held = undefined
    held?.quiet()
    run.endState()
    this.leaveSlot(run)
    if (!this.#runs.has(run.id)) this.#options.onOver?.(run.id)
    this.#checkEmpty()
  }

  leaveSlot(run: SequenceRun): void {
    const { lane } = run
    if (lane === undefined) return
    lane.leave(run)
    this.#promote(lane)
    this.lanes.vacate(lane)
  }

  /** Ends the sequences that were idle for too long. */
  expireIdle(now: number): void {
    for (let run = this.#idle.take(now); run !== undefined; run = this.#idle.take(now)) {
      this.forget(run, "expired")
      this.release(run)
    }
  }

  /** New sequences have slots of these instances only. Sequences of the others keep theirs to their end. */
  replaceInstances(instances: ReadonlyArray<Instance | undefined>): void {
    for (const lane of this.lanes.replace(instances)) this.#promote(lane)
  }

  /** Remembers the end of all sequences, which go on only for the requests that the queue has. */
  retire(): void {
    this.#isRetired = true
    for (const id of this.#runs.keys()) this.#options.ended.add(id, { reason: "stopped", idleMillis: undefined })
  }

  /** Whether no further sequence is taken. */
  get isStopping(): boolean {
    return this.#onEmpty !== undefined
  }

  /** Takes no further sequence. Calls `done` once all are over, perhaps before this returns. */
  stop(done: () => void): void {
    this.#onEmpty ??= done
    this.#checkEmpty()
  }

  /** Gives the free slots of the lane to the sequences that have waited longest. */
  #promote(lane: Lane): void {
    for (let run = this.backlog.first; run !== undefined; run = this.backlog.first) {
      const slot = lane.free
      if (slot === undefined) return
      this.backlog.delete(run)
      lane.enter(run, slot)
      // An imported sequence may have no request yet.
      this.goOn(run, this.now)
    }
  }

  #checkEmpty(): void {
    if (this.#onEmpty !== undefined && this.lanes.live + this.backlog.size === 0) this.#onEmpty()
  }
}
