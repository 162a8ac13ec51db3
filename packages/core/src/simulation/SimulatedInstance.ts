/** An instance of a simulation: it has every batch for as long as the batch costs, and answers nothing. */
import { constVoid } from "effect/Function"
import { Duration, Exit, Result } from "effect"
import * as Batch from "../batch/Batch.ts"
import type { Instance } from "../instance/Instance.ts"
import { noParameters, type Response } from "../request/Request.ts"
import type { Agenda } from "./Agenda.ts"

/** Duration of a batch with this number of rows. A number is in milliseconds. */
type Cost = (rows: number) => Duration.Input

export class SimulatedInstance implements Instance {
  readonly name: string
  readonly concurrency = 1
  readonly #agenda: Agenda
  readonly #cost: Cost
  readonly #onBatch: (batch: Batch.Batch) => void
  batches = 0
  rows = 0
  /** Nanoseconds. */
  worked = 0

  constructor(index: number, agenda: Agenda, cost: Cost, onBatch: (batch: Batch.Batch) => void = constVoid) {
    this.#onBatch = onBatch
    this.name = `simulated_0_${index}`
    this.#agenda = agenda
    this.#cost = cost
  }

  status = () => "available" as const
  onStatusChange = () => {}

  execute: Instance["execute"] = (batch, settle) => {
    const nanos = Duration.toMillis(Duration.fromInputUnsafe(this.#cost(Batch.totalRows(batch)))) * 1e6
    this.#onBatch(batch)
    this.batches += 1
    this.rows += batch.rows
    this.worked += nanos
    const outcomes = batch.requests.map(() => Result.succeed<Response>({ outputs: [], parameters: noParameters }))
    this.#agenda.after(nanos, () => settle(Exit.succeed({ outcomes, inputDuration: 0, outputDuration: 0 })))
    return () => {}
  }
}
