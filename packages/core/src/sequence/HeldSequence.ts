/** A live sequence that is being exported. */
import type { SequenceId } from "../request/SequencePosition.ts"
import type { HeldSequence as Held } from "../transfer/MovableSequences.ts"
import type { SequenceSnapshot } from "../request/SequenceExport.ts"
import type { Hold, SequenceRun } from "./SequenceRun.ts"

/** Parts of the queue. */
export interface HeldSequenceHooks {
  /** The sequence has moved: its waiting requests fail. */
  readonly moved: (run: SequenceRun) => void
  /** The sequence goes on here. */
  readonly goesOn: (run: SequenceRun, now: number) => void
}

export class HeldSequence implements Held, Hold {
  readonly #run: SequenceRun
  readonly #hooks: HeldSequenceHooks
  #onQuiet: (() => void) | undefined

  constructor(run: SequenceRun, hooks: HeldSequenceHooks) {
    this.#run = run
    this.#hooks = hooks
  }

  get id(): SequenceId {
    return this.#run.id
  }

  get isQuiet(): boolean {
    return this.#isHeld && this.#run.issued === undefined && this.#run.end === undefined
  }

  whenQuiet(done: () => void): void {
    if (!this.#isHeld || this.#run.issued === undefined) return done()
    this.#onQuiet = done
  }

  /** Its running request has ended, or the sequence is over. */
  quiet(): void {
    this.#onQuiet?.()
    this.#onQuiet = undefined
  }

  snapshot(now: number): SequenceSnapshot {
    const { id, startedAt, maxIdle, memory } = this.#run
    return { id, ageNanos: now - startedAt, maxIdleNanos: maxIdle, tensors: memory.ownTensors }
  }

  get bytes(): number {
    return this.#run.memory.bytes
  }

  commit(): void {
    if (!this.#isHeld) return
    this.#run.held = undefined
    this.#hooks.moved(this.#run)
  }

  release(now: number): void {
    if (!this.#isHeld) return
    this.#run.held = undefined
    this.#hooks.goesOn(this.#run, now)
  }

  get #isHeld(): boolean {
    return this.#run.held === this
  }
}
