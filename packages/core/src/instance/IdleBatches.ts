/**
 * Batches of an instance whose executor ends while there is nothing to do, and starts again for the next batch. The
 * owner, Supervisor.ts, ends and starts it.
 *
 *   awake ─ no batch for the timeout ─► asleep ─ batch ─► starting ─┬─► awake: runs the batches that wait
 *                                                                   └─► the batches that wait fail
 */
import * as Batch from "../batch/Batch.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Instance, Interrupt, Settle } from "./Instance.ts"
import { Deferred, Effect, Exit } from "effect"

/** A batch that came while there was no executor. */
class WaitingBatch {
  readonly batch: Batch.Batch
  readonly settle: Settle
  readonly #interruptions: Array<number | undefined> = []
  #interrupt: Interrupt | undefined

  constructor(batch: Batch.Batch, settle: Settle) {
    this.batch = batch
    this.settle = settle
  }

  /** Interrupts the batch once it runs. */
  interrupt(request: number | undefined): void {
    if (this.#interrupt === undefined) this.#interruptions.push(request)
    else this.#interrupt(request)
  }

  runs(interrupt: Interrupt): void {
    this.#interrupt = interrupt
    for (const request of this.#interruptions) interrupt(request)
  }
}

export class IdleBatches {
  readonly #run: Instance["execute"]
  /** At most as many as the concurrency of the instance. */
  readonly #waiting: Array<WaitingBatch> = []
  #running = 0
  #wasUsed = false
  /** Completed by the next batch; undefined while awake. */
  #wake: Deferred.Deferred<void> | undefined

  /** `run` executes a batch while the executor is there. */
  constructor(run: Instance["execute"]) {
    this.#run = run
  }

  get isAsleep(): boolean {
    return this.#wake !== undefined
  }

  /** Whether no batch has run since the last call of this. */
  checkIdle(): boolean {
    const isIdle = this.#running === 0 && !this.#wasUsed
    this.#wasUsed = false
    return isIdle
  }

  /** From now on, batches wait for an executor. */
  sleep(): void {
    this.#wake = Deferred.makeUnsafe()
  }

  /** Completes with the first batch that waits; at once while awake. */
  get nextBatch(): Effect.Effect<void> {
    return Effect.suspend(() => (this.#wake === undefined ? Effect.void : Deferred.await(this.#wake)))
  }

  readonly execute: Instance["execute"] = (batch, settle) => {
    this.#wasUsed = true
    if (this.#wake === undefined) return this.#start(batch, settle)
    // States may be in memory of another instance, which changes before the executor is there.
    const waiting = new WaitingBatch(Batch.withOwnInputs(batch), settle)
    this.#waiting.push(waiting)
    Deferred.doneUnsafe(this.#wake, Effect.void)
    return (request) => waiting.interrupt(request)
  }

  /** Runs the batches that wait. */
  awake(): void {
    this.#wake = undefined
    for (const waiting of this.#waiting.splice(0)) waiting.runs(this.#start(waiting.batch, waiting.settle))
  }

  /** Fails the batches that wait. */
  fail(error: InferenceError): void {
    this.#wake = undefined
    for (const { settle } of this.#waiting.splice(0)) settle(Exit.fail(error))
  }

  #start(batch: Batch.Batch, settle: Settle): Interrupt {
    this.#running += 1
    return this.#run(batch, (exit) => {
      this.#running -= 1
      settle(exit)
    })
  }
}
