/**
 * Moves live sequences of a model to another server and back. The state must be in state tensors. Requests that come
 * for a sequence during its export wait: they fail with SequenceNotFound (reason "moved") once it has left, and go on
 * here if the export fails.
 *
 *   hold ─► running requests end ─► snapshots ─► send ─┬─ accepted ─► moved: waiting requests fail
 *             └─ not in time: goes on here             └─ refused, failed, interrupted ─► goes on here
 */
import { type Duration, Effect, Result } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { SequenceExport } from "../request/SequenceExport.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import type { HeldSequence, MovableSequences } from "./MovableSequences.ts"
import * as SequenceTransfer from "./SequenceTransfer.ts"
import type { ImportedSequence } from "./SequenceTransfer.ts"

export interface ExportOptions {
  /** Default: all sequences. Ids that are not live are left out. */
  readonly ids?: Iterable<SequenceId> | undefined
  /** Maximum time for running requests to end. Default 5 seconds. */
  readonly wait?: Duration.Input | undefined
  /** Maximum bytes of state of each group that is sent; a larger state has a group for itself. Default: no limit. */
  readonly maxBytes?: number | undefined
  /** Maximum sequences of each group. Default: no limit. */
  readonly maxSequences?: number | undefined
  /** Maximum groups; further sequences stay. Default: no limit. */
  readonly maxGroups?: number | undefined
}

/** Numbers of sequences. */
export interface MoveCounts {
  readonly moved: number
  /** They go on here. */
  readonly stayed: number
}

interface SchedulerHooks {
  readonly nanos: () => number
  /** The queue has changed. */
  readonly changed: () => void
}

export class SequenceMove {
  readonly #sequences: MovableSequences
  readonly #hooks: SchedulerHooks

  constructor(sequences: MovableSequences, hooks: SchedulerHooks) {
    this.#sequences = sequences
    this.#hooks = hooks
  }

  /** Ids of the sequences that take further requests, the oldest first, `limit` at most. */
  ids(limit: number): ReadonlyArray<SequenceId> {
    return this.#sequences.ids(limit)
  }

  /** Why sequences of the model cannot be moved; undefined if they can. */
  get problem(): InferenceError | undefined {
    return this.#sequences.moveProblem
  }

  /**
   * Takes sequences out, as `ExportOptions` select them, in one group. The result has the only copy of their states.
   * Fails with Unsupported for a model that declares no state tensors.
   */
  exportSequences(options: ExportOptions = {}): Effect.Effect<SequenceExport, InferenceError> {
    return Effect.suspend(() => {
      let exported: SequenceExport = { ...this.#sequences.exportHead, sequences: [] }
      const send = (group: SequenceExport) =>
        Effect.sync(() => {
          exported = group
          return group.sequences.map(({ id }) => id)
        })
      return Effect.map(this.moveSequences(send, { ...options, maxGroups: 1 }), () => exported)
    })
  }

  /**
   * Moves sequences in groups. `send` returns the ids that another server has taken; the others go on here. If it
   * fails, all sequences that have not been taken go on here. Fails with Unsupported as `exportSequences` does.
   */
  moveSequences<E>(
    send: (group: SequenceExport) => Effect.Effect<ReadonlyArray<SequenceId>, E>,
    options: ExportOptions = {},
  ): Effect.Effect<MoveCounts, InferenceError | E> {
    const { ids, wait = "5 seconds" } = options
    return Effect.suspend((): Effect.Effect<MoveCounts, InferenceError | E> => {
      const { moveProblem } = this.#sequences
      if (moveProblem !== undefined) return Effect.fail(moveProblem)
      const held = this.#sequences.hold(ids)
      const moved = Effect.gen({ self: this }, function* () {
        yield* Effect.timeoutOption(allQuiet(held), wait)
        let count = 0
        for (const group of grouped(held, options)) {
          // A sequence may have ended while the groups before were sent.
          const quiet = group.filter(({ isQuiet }) => isQuiet)
          if (quiet.length === 0) continue
          const now = this.#hooks.nanos()
          const sequences = quiet.map((sequence) => sequence.snapshot(now))
          const taken = new Set(yield* send({ ...this.#sequences.exportHead, sequences }))
          for (const sequence of quiet) {
            if (!taken.has(sequence.id)) continue
            sequence.commit()
            count += 1
          }
        }
        return { moved: count, stayed: held.length - count }
      })
      return Effect.ensuring(
        moved,
        Effect.sync(() => this.#release(held)),
      )
    })
  }

  /**
   * Adds sequences that another server has exported, each wholly or not at all, in slots or in the backlog. Fails if
   * the export is of another model, of other states, or of another format.
   */
  importSequences(exported: SequenceExport): Result.Result<ReadonlyArray<ImportedSequence>, InferenceError> {
    const { moveProblem, exportHead } = this.#sequences
    const problem = moveProblem ?? SequenceTransfer.exportProblem(exported, exportHead)
    if (problem !== undefined) return Result.fail(problem)
    const now = this.#hooks.nanos()
    const imported = exported.sequences.map((sequence) => ({
      id: sequence.id,
      problem: this.#sequences.adopt(sequence, now),
    }))
    this.#hooks.changed()
    return Result.succeed(imported)
  }

  #release(held: ReadonlyArray<HeldSequence>): void {
    const now = this.#hooks.nanos()
    for (const sequence of held) sequence.release(now)
    this.#hooks.changed()
  }
}

const allQuiet = (held: ReadonlyArray<HeldSequence>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    let open = held.length
    if (open === 0) return resume(Effect.void)
    const quiet = () => {
      open -= 1
      if (open === 0) resume(Effect.void)
    }
    for (const sequence of held) sequence.whenQuiet(quiet)
  })

const grouped = (
  held: ReadonlyArray<HeldSequence>,
  { maxBytes = Infinity, maxSequences = Infinity, maxGroups = Infinity }: ExportOptions,
): ReadonlyArray<ReadonlyArray<HeldSequence>> => {
  const groups: Array<Array<HeldSequence>> = []
  let bytes = 0
  for (const sequence of held) {
    if (!sequence.isQuiet) continue
    const last = groups.at(-1)
    bytes += sequence.bytes
    if (last !== undefined && bytes <= maxBytes && last.length < maxSequences) {
      last.push(sequence)
      continue
    }
    if (groups.length >= maxGroups) break
    groups.push([sequence])
    bytes = sequence.bytes
  }
  return groups
}
