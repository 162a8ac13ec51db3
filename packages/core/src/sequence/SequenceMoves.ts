/**
 * Exports of the sequences of a queue to another server, and imports from one. The order of the steps is in
 * ../transfer/SequenceMove.ts.
 */
import {
  AlreadyExists,
  ExecutionFailed,
  type InferenceError,
  InvalidRequest,
  QueueFull,
} from "../error/InferenceError.ts"
import { stopping } from "../error/Refusal.ts"
import type { FailureReason } from "../metrics/ModelStatistics.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { SequenceExport, SequenceSnapshot } from "../request/SequenceExport.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import type { MovableSequences } from "../transfer/MovableSequences.ts"
import { fingerprint, format, modelProblem, tensorsProblem } from "../transfer/SequenceTransfer.ts"
import type { EndedSequence, EndedSequences } from "./EndedSequences.ts"
import { HeldSequence, type HeldSequenceHooks } from "./HeldSequence.ts"
import type { LiveSequences } from "./LiveSequences.ts"
import { backlogProblem, idProblem, sequenceNotFound } from "./SequenceProblem.ts"
import type { SequenceRequests } from "./SequenceRequests.ts"
import type { SequenceRun } from "./SequenceRun.ts"

export interface SequenceMovesOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly sequencing: Sequencing
  /** Whether tensors have a batch dimension. */
  readonly batches: boolean
  /** Where ended sequences are remembered. */
  readonly ended: EndedSequences
  /** Ends a request that leaves with its sequence. */
  readonly refuse: (queued: QueuedRequest, reason: FailureReason, error: InferenceError) => void
}

const moved: EndedSequence = { reason: "moved", idleMillis: undefined }

export class SequenceMoves implements MovableSequences {
  readonly #options: SequenceMovesOptions
  readonly #live: LiveSequences
  readonly #requests: SequenceRequests
  readonly #hooks: HeldSequenceHooks

  constructor(options: SequenceMovesOptions, live: LiveSequences, requests: SequenceRequests) {
    this.#options = options
    this.#live = live
    this.#requests = requests
    this.#hooks = {
      moved: (run) => this.#moved(run),
      goesOn: (run, now) => {
        if (run.issued === undefined) live.goOn(run, now)
      },
    }
  }

  ids(limit: number): ReadonlyArray<SequenceId> {
    return this.#live.ids().take(limit).toArray()
  }

  get moveProblem(): InferenceError | undefined {
    return modelProblem(this.#options.model, this.#options.sequencing)
  }

  get exportHead(): Omit<SequenceExport, "sequences"> {
    const { model, sequencing, batches } = this.#options
    return { format, model, states: fingerprint(sequencing, batches) }
  }

  hold(ids: Iterable<SequenceId> = this.#live.ids()): ReadonlyArray<HeldSequence> {
    const held: Array<HeldSequence> = []
    for (const id of ids) {
      const run = this.#live.get(id)
      if (run === undefined || run.isHeld || run.lane === undefined || run.memory.isPrivate) continue
      if (run.waiting.some(startsSequence)) continue
      this.#live.busy(run)
      const hold = new HeldSequence(run, this.#hooks)
      run.held = hold
      held.push(hold)
    }
    return held
  }

  adopt({ id, ageNanos, maxIdleNanos, tensors }: SequenceSnapshot, now: number): InferenceError | undefined {
    const { model, sequencing, batches } = this.#options
    const live = this.#live
    live.now = now
    if (live.isStopping) return stopping()
    const problem = idProblem(model, sequencing, id)
    if (problem !== undefined) return new InvalidRequest({ message: problem })
    if (live.get(id) !== undefined) {
      return new AlreadyExists({ message: `sequence ${id} of model '${model}' is live` })
    }
    const unfit = tensors && tensorsProblem(tensors, sequencing.states, batches)
    if (unfit !== undefined) return new InvalidRequest({ message: `sequence ${id} of model '${model}' ${unfit}` })
    const full = () => new QueueFull({ message: `no room for sequence ${id}: ${backlogProblem(model, sequencing)}` })
    if (!live.hasRoom) return full()
    const memory = live.memory()
    if (tensors !== undefined && !memory.keep(tensors, false)) {
      return new ExecutionFailed({ message: `the state of sequence ${id} exceeds a limit of model '${model}'` })
    }
    const run = live.begin(id, now - ageNanos, memory)
    if (run === undefined) return full()
    run.isStarted = true
    // The limit of the other server may be higher.
    run.maxIdle = maxIdleNanos && Math.min(maxIdleNanos, sequencing.maxIdleLimit)
    if (run.lane !== undefined) live.idle(run, now)
    return undefined
  }

  /** Ends a sequence that has been exported. */
  #moved(run: SequenceRun): void {
    const { model, ended, refuse } = this.#options
    const start = run.waiting.findIndex(startsSequence)
    const leaving = start < 0 ? this.#requests.takeAll(run) : this.#requests.takeWaiting(run, 0, start)
    if (start < 0) {
      // A waiting END is not executed here.
      if (run.end !== undefined) ended.add(run.id, moved)
      this.#live.end(run, "moved")
    } else {
      // The id has begun another sequence, which goes on here.
      run.lane?.advance(run)
    }
    for (const queued of leaving) refuse(queued, "OTHER", sequenceNotFound(model, run.id, moved))
  }
}

const startsSequence = ({ request }: QueuedRequest): boolean => request.sequence?.isStart === true
