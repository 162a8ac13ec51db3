/**
 * Splits a request whose rows may not share a batch: submits each part separately and joins the responses. The caller
 * and the statistics see one request.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Cancel, Parameters, Reply, Request, Response } from "../request/Request.ts"
import type { Scheduler } from "./Scheduler.ts"
import type { ComputeDurations, FailureReason, RequestStatistics } from "../metrics/ModelStatistics.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { resize } from "../tensor/Resize.ts"
import { concat, sameRow, split, type TypedTensor } from "../tensor/TypedTensor.ts"

export interface SplitRequestOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly outputs: ReadonlyArray<TensorSpec>
  /** Bytes of the elements that fill up outputs of different extents, by position. */
  readonly pad: ReadonlyMap<number, Uint8Array>
  readonly submit: Scheduler["submit"]
  readonly statistics: RequestStatistics
}

/** `parts`: the rows of each part; every row of the request is in one of them. */
export const submit = (
  { model, outputs, pad, submit, statistics }: SplitRequestOptions,
  request: Request,
  parts: ReadonlyArray<ReadonlyArray<number>>,
  reply: Reply,
): Cancel => {
  const counts = new PartStatistics(statistics)
  const responses: Array<Response> = []
  const cancels: Array<Cancel> = []
  let open = parts.length
  let isEnded = false

  const end = (outcome: Result.Result<Response, InferenceError>) => {
    isEnded = true
    counts.end(Result.isSuccess(outcome))
    reply(outcome)
  }
  const cancel = () => {
    isEnded = true
    for (const part of cancels) part()
  }
  for (const [index, rows] of parts.entries()) {
    if (isEnded) break
    const part = select(request, rows)
    const ended: Reply = (outcome) => {
      if (isEnded) return
      if (Result.isFailure(outcome)) {
        cancel()
        return end(outcome)
      }
      responses[index] = outcome.success
      open -= 1
      if (open === 0) end(join({ model, outputs, pad }, parts, responses))
    }
    cancels.push(submit(part, ended, counts))
  }
  return cancel
}

/** Some of its rows. */
const select = (request: Request, rows: ReadonlyArray<number>): Request => ({
  ...request,
  targets: undefined,
  inputs: request.inputs.map((tensor) => tensor && pick(single(tensor), rows)),
  rows: rows.length,
})

const single = (tensor: TypedTensor): ReadonlyArray<TypedTensor> =>
  split(
    tensor,
    Array.from({ length: tensor.shape[0] ?? 0 }, () => 1),
  )

const pick = (rows: ReadonlyArray<TypedTensor>, indexes: ReadonlyArray<number>): TypedTensor | undefined => {
  const [first, ...rest] = indexes.flatMap((index) => rows[index] ?? [])
  return first && concat([first, ...rest])
}

/** Joins the rows of all parts in the order of the request. */
const join = (
  { model, outputs: specs, pad }: Pick<SplitRequestOptions, "model" | "outputs" | "pad">,
  parts: ReadonlyArray<ReadonlyArray<number>>,
  responses: ReadonlyArray<Response>,
): Result.Result<Response, InferenceError> => {
  const outputs: Array<TypedTensor> = []
  // By row of the request, which of the rows of all parts it is.
  const places: Array<number> = []
  for (const [place, row] of parts.flat().entries()) places[row] = place
  for (const [position, { name }] of specs.entries()) {
    const tensors = padded(
      responses.flatMap(({ outputs }) => outputs[position] ?? []),
      pad.get(position),
    )
    const shape = tensors[0]?.shape ?? []
    const other = tensors.find((tensor) => !sameRow(tensor.shape, shape))?.shape
    if (other !== undefined) {
      const text = `the rows of one request have different shapes, [${shape.slice(1)}] and [${other.slice(1)}]`
      return Result.fail(new ExecutionFailed({ message: `output '${name}' of model '${model}': ${text}` }))
    }
    const tensor = pick(tensors.flatMap(single), places)
    if (tensor !== undefined) outputs.push(tensor)
  }
  const parameters: Parameters = Object.assign({}, ...responses.map(({ parameters }) => parameters))
  return Result.succeed({ outputs, parameters })
}

/** Fills up the dims behind the rows to the longest, if there is an element for it and the ranks agree. */
const padded = (tensors: ReadonlyArray<TypedTensor>, element: Uint8Array | undefined): ReadonlyArray<TypedTensor> => {
  const rank = tensors[0]?.shape.length ?? 0
  if (element === undefined || tensors.some(({ shape }) => shape.length !== rank)) return tensors
  let filled = tensors
  for (let axis = 1; axis < rank; axis++) {
    const extent = Math.max(...filled.map(({ shape }) => shape[axis] ?? 0))
    filled = filled.map((tensor) => resize(tensor, axis, extent, element))
  }
  return filled
}

/** Counts the parts as one request, whose duration is that of the part that ended last. */
class PartStatistics implements RequestStatistics {
  readonly #statistics: RequestStatistics
  #total = 0
  #queued = 0
  #id = ""
  #compute: ComputeDurations = { input: 0, infer: 0, output: 0 }
  #isCounted = false

  constructor(statistics: RequestStatistics) {
    this.#statistics = statistics
  }

  succeeded(total: number, queued: number, compute: ComputeDurations, id = ""): void {
    this.#id = id
    this.#total = total
    this.#queued = queued
    this.#compute = compute
  }

  failed(reason: FailureReason, total: number, id = ""): void {
    if (this.#isCounted) return
    this.#isCounted = true
    this.#statistics.failed(reason, total, id)
  }

  /** Unless it has failed already, as a part of it has. */
  end(isSuccess: boolean): void {
    if (this.#isCounted) return
    this.#isCounted = true
    if (isSuccess) this.#statistics.succeeded(this.#total, this.#queued, this.#compute, this.#id)
    else this.#statistics.failed("BACKEND", this.#total, this.#id)
  }
}
