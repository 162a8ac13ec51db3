/**
 * Executes one request with a handler of single samples. Each row is decoded, handled and encoded separately, all
 * concurrently. The rows succeed or fail together.
 */
import { Cause, type Context, Effect, Exit, Result } from "effect"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { Literals, Sample } from "../model/Definition.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import * as Handler from "./Handler.ts"
import type { Request, Response } from "../request/Request.ts"
import { withoutBatch } from "../model/BatchedTensors.ts"
import type { Declared } from "../model/Declared.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import { RequestScope } from "./RequestScope.ts"
import type { SampleCodec, SampleError } from "../model/SampleCodec.ts"
import type { Signature, TensorSpec } from "../tensor/TensorSpec.ts"
import { concat, sameRow, split, type TypedTensor } from "../tensor/TypedTensor.ts"
import * as UserCode from "./UserCode.ts"

/** Options shared by all requests of one instance. */
export interface EachOptions<I extends Fields, O extends Fields, E, R, P extends Declared> extends Handler.ModelErrors {
  readonly signature: Signature
  readonly batching: boolean
  readonly inputCodec: SampleCodec
  readonly outputCodec: SampleCodec
  readonly handler: (
    sample: Sample<I>,
    request: HandledRequest<P>,
  ) => UserCode.HandlerResult<Sample<O> | Literals<O>, E, R>
  readonly context: Context.Context<Exclude<R, RequestContext>>
  readonly handling: HandlerEnvironment
}

type Outcome = Result.Result<Response, InferenceError>

export class EachRequest<I extends Fields, O extends Fields, E, R, P extends Declared> {
  readonly #options: EachOptions<I, O, E, R, P>
  readonly #request: Request
  readonly #ended: (outcome: Outcome) => void
  /** Outputs by row, of those that have ended. */
  readonly #rows: Array<ReadonlyArray<TypedTensor>> = []
  /** Rows that have not ended. */
  #open: number
  /** Of the first row that failed. */
  #failure: InferenceError | undefined
  /** Rows that have not ended at once. */
  #calls: Array<UserCode.RunningCall<unknown, unknown>> | undefined
  readonly #scope: RequestScope<P>
  #isInterrupted = false

  /** `ended` takes the outcome once every row has ended. */
  constructor(options: EachOptions<I, O, E, R, P>, request: Request, ended: (outcome: Outcome) => void) {
    this.#options = options
    this.#request = request
    this.#ended = ended
    this.#open = request.rows
    this.#scope = new RequestScope<P>(request, options.handling)
  }

  begin(): void {
    const { inputs, rows } = this.#request
    if (!this.#options.batching) return this.#beginRow(0, inputs)
    if (rows === 1) {
      return this.#beginRow(
        0,
        inputs.map((tensor) => tensor && withoutBatch(tensor)),
      )
    }
    for (const [row, tensors] of samples(this.#request).entries()) this.#beginRow(row, tensors)
  }

  interrupt(): void {
    this.#isInterrupted = true
    this.#stop()
  }

  #stop(): void {
    this.#scope.cancel()
    for (const row of this.#calls ?? []) row.interruptUnsafe()
  }

  #beginRow(row: number, tensors: Request["inputs"]): void {
    const sample = this.#sample(tensors)
    if (Result.isFailure(sample)) return this.#endRow(row, Result.fail(sample.failure))
    const call = UserCode.call(this.#options.handler, sample.success, this.#scope, (effect) =>
      Effect.runForkWith(this.#scope.context<R>(this.#options.context))(effect),
    )
    if (Exit.isExit(call)) return this.#endRow(row, this.#outputs(call))
    this.#calls ??= []
    this.#calls.push(call)
    call.addObserver((exit) => this.#endRow(row, this.#outputs(exit)))
    if (this.#failure !== undefined) call.interruptUnsafe()
  }

  #sample(tensors: Request["inputs"]): Result.Result<Sample<I>, InferenceError> {
    const { name, inputCodec } = this.#options
    try {
      const decoded = inputCodec.decode(tensors)
      if (Result.isFailure(decoded)) return Result.fail(Handler.wrongInput(name, this.#request, decoded.failure))
      // The codec has put exactly the fields of I into it, each decoded by its own Schema.
      return Result.succeed(decoded.success as Sample<I>)
    } catch (defect) {
      return Result.fail(this.#failureOf(Cause.die(defect)))
    }
  }

  #outputs(
    exit: Exit.Exit<unknown, E | UserCode.ThrownError>,
  ): Result.Result<ReadonlyArray<TypedTensor>, InferenceError> {
    const { name, outputCodec, batching } = this.#options
    if (Exit.isFailure(exit)) return Result.fail(this.#failureOf(exit.cause))
    try {
      const encoded = outputCodec.encode(exit.value, batching)
      if (Result.isFailure(encoded)) return Result.fail(Handler.wrongOutput(name, encoded.failure))
      return Result.succeed(Handler.present(encoded.success))
    } catch (defect) {
      return Result.fail(this.#failureOf(Cause.die(defect)))
    }
  }

  #failureOf(cause: Cause.Cause<unknown>): InferenceError {
    const { name, handling } = this.#options
    const { error, unexpected } = Handler.failure(this.#options, handling.instance, cause)
    const isOwnInterrupt = (this.#isInterrupted || this.#failure !== undefined) && !Cause.hasDies(cause)
    if (unexpected !== undefined && !isOwnInterrupt) {
      Effect.runForkWith(handling.context)(Handler.logUnexpected(name, unexpected))
    }
    return error
  }

  #endRow(row: number, outputs: Result.Result<ReadonlyArray<TypedTensor>, InferenceError>): void {
    this.#open -= 1
    if (Result.isSuccess(outputs)) {
      this.#rows[row] = outputs.success
    } else if (this.#failure === undefined) {
      this.#failure = outputs.failure
      this.#stop()
    }
    if (this.#open === 0) this.#ended(this.#outcome())
  }

  #outcome(): Outcome {
    const { name, signature } = this.#options
    if (this.#failure !== undefined) return Result.fail(this.#failure)
    const uneven = unevenOutput(signature.outputs, this.#rows)
    if (uneven !== undefined) return Result.fail(Handler.wrongOutput(name, uneven))
    return Result.succeed({ outputs: joinRows(this.#rows), parameters: this.#scope.responseParameters() })
  }
}

/** The inputs of each row of a request, without the batch dimension. */
const samples = ({ inputs, rows }: Request): ReadonlyArray<Request["inputs"]> => {
  const ones = Array.from({ length: rows }, () => 1)
  const columns = inputs.map((tensor) => tensor && split(tensor, ones).map(withoutBatch))
  return ones.map((_, row) => columns.map((column) => column?.[row]))
}

/** The rows of one request are one tensor, so what a dynamic dim is in one row it must be in all. */
const unevenOutput = (
  specs: ReadonlyArray<TensorSpec>,
  rows: ReadonlyArray<ReadonlyArray<TypedTensor>>,
): SampleError | undefined => {
  const [first = []] = rows
  for (const [index, spec] of specs.entries()) {
    const shape = first[index]?.shape ?? []
    const other = rows.find((outputs) => !sameRow(outputs[index]?.shape ?? [], shape))?.[index]?.shape
    if (other === undefined) continue
    const message = `the rows of one request have different shapes, [${shape.slice(1)}] and [${other.slice(1)}]`
    return { field: spec.name, message }
  }
  return undefined
}

/** The outputs of rows, each a batch of one, as one batch. */
const joinRows = (rows: ReadonlyArray<ReadonlyArray<TypedTensor>>): ReadonlyArray<TypedTensor> => {
  const [first = [], ...rest] = rows
  return first.map((tensor, index) => concat([tensor, ...rest.flatMap((outputs) => outputs[index] ?? [])]))
}
