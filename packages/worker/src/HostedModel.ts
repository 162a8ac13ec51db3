/**
 * Model inside a worker thread: built from the layer that its module exports, and called by the messages of
 * WorkerThread.ts. Core executes the batches, as on the main thread.
 */
import { modelKeyPrefix } from "@nereid/core/internal/call/ModelClass"
import type { Inference as Service } from "@nereid/core/internal/call/Inference"
import { DeclaredFailure, Unrecoverable } from "@nereid/core/Errors"
import { retryAfter } from "@nereid/core/internal/error/InferenceError"
import type { Fields } from "@nereid/core/internal/model/Field"
import { Hosting } from "@nereid/core/internal/instance/Hosting"
import type { Cancel, Emit, Request, Response } from "@nereid/core/internal/request/Request"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { Effect, Layer, Result, type Scope } from "effect"
import { TensorBufferWriter, unpack } from "./TensorBuffer.ts"
import type { FromThread, OutcomeMessage, RequestMessage, ResponseMessage, ToThread } from "./ThreadProtocol.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import { noState } from "@nereid/core/internal/request/SequencePosition"

/** Builds the model. Dies if the module does not export its layer. */
export const load = Effect.fn("HostedModel.load")(function* (
  module: string,
  instance: BuiltInstance,
): Effect.fn.Return<RunningModel, unknown, Scope.Scope> {
  const exported: { readonly default?: unknown } = yield* Effect.tryPromise({
    try: () => import(module),
    catch: (error) => error,
  })
  const { default: layer } = exported
  if (!isClosed(layer)) return yield* Effect.fail(new TypeError("its default export is not a model layer"))
  const context = yield* Effect.provideService(Layer.build(layer), Hosting, instance)
  const services: ReadonlyMap<string, Service<Fields, Fields>> = context.mapUnsafe
  const found = services.get(modelKeyPrefix + instance.model)?.model
  if (found !== undefined && found.description.version === instance.version) return found
  const expected = `model '${instance.model}' version ${instance.version}`
  return yield* Effect.fail(new TypeError(`its layer does not provide ${expected}`))
})

/** Whether a value is a layer. A missing service cannot be detected here; it fails the build. */
const isClosed = (layer: unknown): layer is Layer.Layer<never, unknown> => Layer.isLayer(layer)

export class HostedModel {
  readonly #model: RunningModel
  readonly #post: (message: FromThread, transfer: ReadonlyArray<ArrayBuffer>) => void
  readonly #batches = new Map<number, RunningBatch>()

  constructor(model: RunningModel, post: (message: FromThread, transfer: ReadonlyArray<ArrayBuffer>) => void) {
    this.#model = model
    this.#post = post
  }

  get ready(): FromThread {
    const {
      calls: { decoupled },
      description: { maxBatchSize, signature },
    } = this.#model
    const [inputs, outputs] = [signature.inputs, signature.outputs].map((specs) =>
      specs.map(({ name, datatype, dims, optional }) => ({ name, datatype, dims, optional })),
    )
    return { _tag: "Ready", decoupled, maxBatchSize, inputs: inputs ?? [], outputs: outputs ?? [] }
  }

  receive(message: Exclude<ToThread, { _tag: "Stop" }>): void {
    const running = this.#batches.get(message.batch)
    switch (message._tag) {
      case "Execute":
        return this.#execute(message.batch, message.requests, message.buffer)
      case "Resume":
        return running?.resume?.()
      case "Cancel":
        // The outcomes are not needed any more.
        if (running === undefined) return
        for (const cancel of running.cancels) cancel()
        return this.#end(message.batch, [])
    }
  }

  #execute(batch: number, requests: ReadonlyArray<RequestMessage>, buffer: ArrayBuffer): void {
    const running: RunningBatch = { cancels: [], resume: undefined }
    this.#batches.set(batch, running)
    const outcomes: Array<Result.Result<Response, Failure>> = []
    let open = requests.length
    for (const [index, request] of requests.entries()) {
      const cancel = this.#model.calls.submit(this.#request(request, buffer, batch, running), (outcome) => {
        outcomes[index] = outcome
        open -= 1
        if (open === 0) this.#end(batch, outcomes)
      })
      running.cancels.push(cancel)
    }
  }

  #request(
    { inputs, remaining, sequence, ...request }: RequestMessage,
    buffer: ArrayBuffer,
    batch: number,
    running: RunningBatch,
  ): Request {
    const deadline = remaining === undefined ? undefined : MonotonicTime.millis() + remaining
    const tensors = inputs.map((tensor) => tensor && unpack(buffer, tensor))
    // The state of a sequence is among the inputs and outputs: the main thread keeps it.
    const position = sequence && { ...sequence, state: noState() }
    const decoded = { ...request, inputs: tensors, deadline, ...(position && { sequence: position }) }
    return this.#model.calls.decoupled ? { ...decoded, emit: this.#emit(batch, running) } : decoded
  }

  /** Completes with the "Resume" message for this response. */
  #emit(batch: number, running: RunningBatch): Emit {
    return (response) =>
      Effect.callback((resume) => {
        running.resume = () => resume(Effect.void)
        const writer = new TensorBufferWriter()
        const message = packed(writer, response)
        const buffer = writer.end()
        this.#post({ _tag: "Response", batch, response: message, buffer }, [buffer])
      })
  }

  #end(batch: number, outcomes: ReadonlyArray<Result.Result<Response, Failure>>): void {
    if (!this.#batches.delete(batch)) return
    const writer = new TensorBufferWriter()
    const messages = outcomes.map((outcome): OutcomeMessage =>
      Result.isSuccess(outcome)
        ? { _tag: "Succeeded", response: packed(writer, outcome.success) }
        : refused(outcome.failure),
    )
    const buffer = writer.end()
    this.#post({ _tag: "Outcomes", batch, outcomes: messages, buffer }, [buffer])
  }
}

interface Failure {
  readonly _tag: string
  readonly message: string
}

interface RunningBatch {
  readonly cancels: Array<Cancel>
  /** Resumes a decoupled model after a response. */
  resume: (() => void) | undefined
}

const refused = (failure: Failure): OutcomeMessage => {
  const { _tag: tag, message } = failure
  if (failure instanceof DeclaredFailure) {
    const { kind, http, grpc, document } = failure
    return { _tag: "Failed", message, kind, http, grpc, document }
  }
  const unrecoverable = failure instanceof Unrecoverable
  return { _tag: "Refused", tag, message, unrecoverable, retryAfter: retryAfter(failure) }
}

const packed = (
  writer: TensorBufferWriter,
  { outputs, parameters, isRescheduled = false }: Response,
): ResponseMessage => ({
  outputs: outputs.map((tensor) => tensor && writer.add(tensor)),
  parameters,
  isRescheduled,
})
