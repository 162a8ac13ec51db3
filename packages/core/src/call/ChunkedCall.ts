/**
 * One call of more rows than the model takes in a batch: it goes in chunks, some of them at the same time, and is answered as
 * one. A model knows nothing of it, so that it is the same where the model runs elsewhere; rows of one request that may not
 * share a batch are SplitRequest.ts's.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Cancel, Parameters, Reply, Request, Response } from "../request/Request.ts"
import { ask, type CallableModel } from "../running/CallableModel.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { concat, sameRow, slice, type TypedTensor } from "../tensor/TypedTensor.ts"

/** How calls of several samples go, where these are more than the model takes in a batch. */
export interface ChunkOptions {
  /**
   * A batch of more than `maxBatchSize` rows goes in chunks of so many, this many chunks at the same time; 0: it is an
   * InvalidRequest. Default 4.
   */
  readonly concurrentChunks?: number
}

export const defaultConcurrentChunks = 4

export interface ChunkedCallOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly outputs: ReadonlyArray<TensorSpec>
  /** Rows of a chunk; the last one has what is left. */
  readonly rows: number
  /** Chunks that are on their way at the same time. */
  readonly concurrency: number
}

/** The first failure is that of the call, and takes the chunks back that are on their way; further ones are not begun. */
export const submit = (options: ChunkedCallOptions, model: CallableModel, request: Request, reply: Reply): Cancel => {
  const { rows, concurrency } = options
  const count = Math.ceil(request.rows / rows)
  const responses: Array<Response> = []
  const going = new Set<Cancel>()
  let begun = 0
  let ended = 0
  let isOver = false
  // Models may answer at once: what is to begin is begun by the loop that runs, and not from within it.
  let isBeginning = false

  const cancel = () => {
    isOver = true
    for (const chunk of going) chunk()
    going.clear()
  }

  const begin = (index: number) => {
    let take: Cancel | undefined
    let isAnswered = false
    take = ask(model, chunk(request, index * rows, rows), (outcome) => {
      isAnswered = true
      if (take !== undefined) going.delete(take)
      if (isOver) return
      if (Result.isFailure(outcome)) {
        cancel()
        return reply(outcome)
      }
      responses[index] = outcome.success
      ended += 1
      if (ended === count) {
        isOver = true
        return reply(join(options, responses))
      }
      beginAll()
    })
    if (!isAnswered) going.add(take)
  }

  const mayBegin = () => !isOver && begun < count && begun - ended < concurrency

  const beginAll = () => {
    if (isBeginning) return
    isBeginning = true
    while (mayBegin()) begin(begun++)
    isBeginning = false
  }

  beginAll()
  return cancel
}

const chunk = (request: Request, start: number, rows: number): Request => {
  const end = Math.min(request.rows, start + rows)
  return { ...request, inputs: request.inputs.map((tensor) => tensor && slice(tensor, start, end)), rows: end - start }
}

/** All rows, in their order; of parameters that several chunks have, those of the last one. */
const join = (
  { model, outputs: specs }: ChunkedCallOptions,
  responses: ReadonlyArray<Response>,
): Result.Result<Response, InferenceError> => {
  const outputs: Array<TypedTensor> = []
  for (const [position, { name }] of specs.entries()) {
    const [first, ...rest] = responses.flatMap(({ outputs }) => outputs[position] ?? [])
    if (first === undefined) continue
    const other = rest.find(({ shape }) => !sameRow(shape, first.shape))
    if (other !== undefined) {
      const text = `the chunks of one batch have different shapes, [${first.shape.slice(1)}] and [${other.shape.slice(1)}]`
      return Result.fail(new ExecutionFailed({ message: `output '${name}' of model '${model}': ${text}` }))
    }
    outputs.push(concat([first, ...rest]))
  }
  const parameters: Parameters = Object.assign({}, ...responses.map(({ parameters }) => parameters))
  return Result.succeed({ outputs, parameters })
}
