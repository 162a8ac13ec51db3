/** One batch in a model process, from its EXECUTE frame to the last response of its last request. */
import { Exit, Result } from "effect"
import type { Batch } from "@nereid/core/internal/batch/Batch"
import * as Batches from "@nereid/core/internal/batch/Batch"
import { ExecutionFailed, type InferenceError } from "@nereid/core/Errors"
import type { ExecutionResult, Settle } from "@nereid/core/internal/instance/Instance"
import { noParameters, type Request, type Response } from "@nereid/core/internal/request/Request"
import * as SharedBytes from "@nereid/core/internal/tensor/SharedBytes"
import * as ErrorCode from "../wire/ErrorCode.ts"
import * as Header from "../wire/Header.ts"
import * as ParameterText from "../wire/ParameterText.ts"
import { TensorReader } from "../wire/TensorMessage.ts"
import type { OpenRequest, Outcome } from "./OpenRequest.ts"
import type { OutputCheck } from "./OutputCheck.ts"
import * as RestDeadline from "./RestDeadline.ts"

export interface ExecutionOptions {
  readonly batch: Batch
  readonly settle: Settle
  /** Name of the instance. */
  readonly instance: string
  readonly decoupled: boolean
  readonly batching: boolean
  readonly check: OutputCheck
  readonly inputDuration: number
  readonly open: (request: Request, index: number) => OpenRequest
}

export class Execution {
  readonly #options: ExecutionOptions
  readonly #requests: ReadonlyArray<OpenRequest>
  /** Shared memory that the process may still open. */
  #held: ReadonlyArray<() => void>
  #isSettled = false

  constructor(options: ExecutionOptions) {
    this.#options = options
    this.#requests = options.batch.requests.map(options.open)
    this.#held = options.batch.requests.flatMap((request) => sharedOf(request).map(({ hold }) => hold()))
  }

  /** The process opens no shared memory of the requests any more. */
  release(): void {
    for (const release of this.#held) release()
    this.#held = []
  }

  /** Whether nothing more is expected from the process. */
  get isOver(): boolean {
    return this.#isSettled && this.#requests.every(({ isOver }) => isOver)
  }

  /** Whether `execute` has returned. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /** Cancels the request at this index, or all. */
  cancel(index?: number): void {
    if (index !== undefined) this.#requests[index]?.cancel()
    else for (const request of this.#requests) request.cancel()
  }

  /**
   * Takes a RESPONSE frame.
   * @throws Error if it is wrong
   */
  responded(header: Header.Header, body: Uint8Array): void {
    const request = this.#requests[Header.integer(header, "q") ?? -1]
    if (request === undefined) throw new Error("a response names an unknown request")
    const isFinal = header["final"] === 1
    if (header["e"] !== undefined || header["o"] !== undefined) {
      request.respond(this.#outcome(request.request, header, new TensorReader(body)), isFinal)
    }
    if (isFinal) request.end()
  }

  /**
   * Takes the RETURNED frame: `execute` has ended. The body is no longer read once `release` was called.
   * @throws Error if it is wrong
   */
  returned(header: Header.Header, body: Uint8Array, release: (() => void) | undefined): void {
    if (this.#isSettled) throw new Error("an execution has returned twice")
    const startedAt = performance.now()
    const error = Header.text(header, "e")
    if (error !== undefined) return this.fail(this.#raised(error))
    const reader = new TensorReader(body)
    const views = header["j"] === undefined ? this.#outcomes(header, reader) : this.#joined(header, reader)
    const outcomes = release === undefined ? views : releasing(views, release)
    const outputDuration = (performance.now() - startedAt) * 1e6
    this.#settle(Exit.succeed({ outcomes, inputDuration: this.#options.inputDuration, outputDuration }))
  }

  /** Fails all requests that are not over. */
  fail(error: InferenceError): void {
    if (this.#isSettled) {
      for (const request of this.#requests) request.end(error)
      return
    }
    const ended = this.#requests.map((request) => request.isOver)
    for (const request of this.#requests) request.end(error)
    if (!ended.includes(true)) return this.#settle(Exit.fail(error))
    const outcomes = this.#requests.map(outcomeOf)
    this.#settle(Exit.succeed({ outcomes, inputDuration: this.#options.inputDuration, outputDuration: 0 }))
  }

  #settle(exit: Exit.Exit<ExecutionResult, InferenceError>): void {
    this.#isSettled = true
    this.#options.settle(exit)
  }

  #outcomes(header: Header.Header, reader: TensorReader): ReadonlyArray<Outcome> {
    const given = Header.list(header, "r")
    if (given.length !== this.#requests.length) {
      throw new Error(`an execution of ${this.#requests.length} requests returned ${given.length} outcomes`)
    }
    return this.#requests.map((request, index) => {
      const outcome = given[index]
      if (!Header.isRecord(outcome)) throw new Error("an outcome is not an object")
      return this.#returnedOutcome(request, outcome, reader)
    })
  }

  #returnedOutcome(request: OpenRequest, outcome: Header.Header, reader: TensorReader): Outcome {
    if (outcome["re"] === 1) {
      request.end()
      return rescheduled
    }
    if (outcome["w"] === 1 && !request.isOver) return goesOn(request)
    if (outcome["o"] !== undefined || outcome["e"] !== undefined) {
      const result = this.#outcome(request.request, outcome, reader)
      request.end()
      return result
    }
    request.end()
    return outcomeOf(request)
  }

  /** A response with outputs, or an error. */
  #outcome(request: Request, header: Header.Header, reader: TensorReader): Outcome {
    const { batching, check, decoupled } = this.#options
    const error = Header.text(header, "e")
    if (error !== undefined) return Result.fail(ErrorCode.toError(Header.integer(header, "k"), error))
    const parameters = ParameterText.parse(Header.text(header, "p") ?? "")
    // The responses of a decoupled model have any number of rows.
    const rows = batching && !decoupled ? request.rows : undefined
    const received = reader.read(Header.list(header, "o"), request.targets)
    const outputs = check(received, { rows, names: request.requestedOutputs ?? [] })
    return Result.map(outputs, (outputs): Response => ({ outputs, parameters }))
  }

  /** Outputs of all rows, of a function. */
  #joined(header: Header.Header, reader: TensorReader): ReadonlyArray<Outcome> {
    const { batch, batching, check } = this.#options
    const rows = batching ? Batches.totalRows(batch) : undefined
    const outputs = check(reader.read(Header.list(header, "o")), { rows, names: [] })
    for (const request of this.#requests) request.end()
    if (Result.isFailure(outputs)) return this.#requests.map(() => Result.fail(outputs.failure))
    const tensors = outputs.success.flatMap((tensor) => tensor ?? [])
    return Batches.split(batch, tensors).map((response) => Result.succeed(response))
  }

  #raised(text: string): InferenceError {
    const prefix = `Failed to process the request(s) for model '${this.#options.instance}', message: `
    return new ExecutionFailed({ message: prefix + text })
  }
}

/** Of a request that goes on after its batch. */
const goesOn = (request: OpenRequest): Outcome =>
  Result.succeed({ outputs: [], parameters: noParameters, rest: RestDeadline.watch(request.request, request.rest) })

/** Of a request that the process has ended. Its reader may have to take responses still. */
const outcomeOf = (request: OpenRequest): Outcome => (request.isSettled ? request.outcome : goesOn(request))

/** Shared memory of inputs and for outputs; nearly all requests have none. */
const sharedOf = ({ inputs, targets }: Request): ReadonlyArray<SharedBytes.SharedBytes> => {
  const all = targets === undefined ? [] : [...targets.values()]
  for (const tensor of inputs) {
    const shared = tensor && SharedBytes.of(tensor)
    if (shared !== undefined) all.push(shared)
  }
  return all
}

/** The same outcomes. The memory of their outputs is released with the last one of them. */
const releasing = (outcomes: ReadonlyArray<Outcome>, release: () => void): ReadonlyArray<Outcome> => {
  const hasOutputs = (outcome: Outcome) => Result.isSuccess(outcome) && outcome.success.outputs.length > 0
  let left = 0
  for (const outcome of outcomes) if (hasOutputs(outcome)) left += 1
  return outcomes.map((outcome) => {
    if (!hasOutputs(outcome)) return outcome
    let isReleased = false
    const releaseOne = () => {
      if (isReleased) return
      isReleased = true
      left -= 1
      if (left === 0) release()
    }
    return Result.map(outcome, (response): Response => ({ ...response, release: releaseOne }))
  })
}

const rescheduled: Outcome = Result.succeed({ outputs: [], parameters: noParameters, isRescheduled: true })
