/**
 * Splits a call with more rows than the maximum batch size: submits the rows in chunks, several at a time, and joins
 * the responses. Works for local and remote models. SplitRequest.ts splits requests whose rows may not share a batch.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Cancel, Parameters, Reply, Request, Response } from "../request/Request.ts"
import { type CallableModel, submitSingle } from "../running/CallableModel.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { concat, sameRow, slice, type TypedTensor } from "../tensor/TypedTensor.ts"

/** Options of calls with several samples. */
export interface ChunkOptions {
  /**
   * Maximum concurrent chunks of a batch with more than `maxBatchSize` rows. With 0, such batches fail with
   * InvalidRequest. Default 4.
   */
  readonly concurrentChunks?: number
}

export const defaultConcurrentChunks = 4

export interface ChunkedCallOptions {
  /** Name of the model, for messages. */
  readonly model: string
  readonly outputs: ReadonlyArray<TensorSpec>
  /** Rows of a chunk; the last chunk has the remaining rows. */
  readonly rows: number
  /** Chunks in flight at the same time. */
  readonly concurrency: number
}

/** The model for requests of any number of rows. `deadline` is that of requests without one, in milliseconds. */
export const make = (
  options: ChunkedCallOptions,
  model: CallableModel,
  deadline: number | undefined,
): CallableModel => ({
  decoupled: false,
  emits: false,
  submit: (request, reply) => {
    const call = new ChunkedCall(options, model, { ...request, deadline: request.deadline ?? deadline }, reply)
    call.submit()
    return () => call.cancel()
  },
})

class ChunkedCall {
  readonly #options: ChunkedCallOptions
  readonly #model: CallableModel
  readonly #request: Request
  readonly #reply: Reply
  /** Number of chunks. */
  readonly #count: number
  readonly #responses: Array<Response> = []
  readonly #inFlight = new Set<Cancel>()
  #submitted = 0
  #succeeded = 0
  #isOver = false
  /**
   * A model may reply before `submit` returns; the loop that runs then submits the next chunk, which bounds the stack.
   */
  #isSubmitting = false

  constructor(options: ChunkedCallOptions, model: CallableModel, request: Request, reply: Reply) {
    this.#options = options
    this.#model = model
    this.#request = request
    this.#reply = reply
    this.#count = Math.ceil(request.rows / options.rows)
  }

  /** Submits as many chunks as may be in flight. */
  submit(): void {
    if (this.#isSubmitting) return
    this.#isSubmitting = true
    while (this.#maySubmit()) this.#submitChunk(this.#submitted++)
    this.#isSubmitting = false
  }

  /** Cancels the chunks in flight, and submits no more. */
  cancel(): void {
    this.#isOver = true
    for (const cancel of this.#inFlight) cancel()
    this.#inFlight.clear()
  }

  #maySubmit(): boolean {
    const inFlight = this.#submitted - this.#succeeded
    return !this.#isOver && this.#submitted < this.#count && inFlight < this.#options.concurrency
  }

  #submitChunk(index: number): void {
    const { rows } = this.#options
    let cancel: Cancel | undefined
    let hasEnded = false
    cancel = submitSingle(this.#model, chunk(this.#request, index * rows, rows), (outcome) => {
      hasEnded = true
      if (cancel !== undefined) this.#inFlight.delete(cancel)
      if (!this.#isOver) this.#end(index, outcome)
    })
    if (!hasEnded) this.#inFlight.add(cancel)
  }

  /** The first failure is that of the call. */
  #end(index: number, outcome: Result.Result<Response, InferenceError>): void {
    if (Result.isFailure(outcome)) {
      this.cancel()
      this.#reply(outcome)
      return
    }
    this.#responses[index] = outcome.success
    this.#succeeded += 1
    if (this.#succeeded < this.#count) return this.submit()
    this.#isOver = true
    this.#reply(join(this.#options, this.#responses))
  }
}

const chunk = (request: Request, start: number, rows: number): Request => {
  const end = Math.min(request.rows, start + rows)
  return { ...request, inputs: request.inputs.map((tensor) => tensor && slice(tensor, start, end)), rows: end - start }
}

/** All rows, in their order. A parameter of several responses has its value in the last of them. */
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
