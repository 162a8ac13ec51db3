/**
 * Executes one request in the graph of an ensemble. A step starts as soon as its tensors are available, so independent
 * steps run concurrently. Execution is by plain calls; only the responses of a decoupled ensemble require a fiber,
 * because the caller may apply backpressure.
 *
 *   submit ─► level 0 ─► steps ─► all outputs ─────────────────────────────────► reply
 *                          └─ decoupled: each response, level 1 ─► … ─► responses, in order ─► emit ─► caller
 *                                 ▲                                                             │
 *                                 └────────── paused while too many are pending ◄───────────────┘
 *
 * The first failure fails the request, after the responses before it, and cancels the other steps.
 */
import { Cause, Effect, type Fiber, Latch, Result } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import { callableBy, type CallerService } from "../call/Caller.ts"
import { notReady } from "../error/Refusal.ts"
import { DeadlineExceeded, ExecutionFailed, type InferenceError, withMessage } from "../error/InferenceError.ts"
import { type Cancel, errorPrefix, noParameters, type Request, type Response, type Trace } from "../request/Request.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { print } from "../tensor/TensorSpec.ts"
import { elementCount, type TypedTensor } from "../tensor/TypedTensor.ts"
import { EnsembleFlow } from "./EnsembleFlow.ts"
import type { EnsembleGraph, LinkedStep } from "./EnsembleGraph.ts"
import * as SequenceParameters from "./SequenceParameters.ts"
import * as StepRequest from "./StepRequest.ts"

export interface EnsembleRequestOptions {
  readonly graph: EnsembleGraph
  readonly request: Request
  readonly cycles: CallCycleDetector
  /** Whether it is answered through `emit`, for any graph. */
  readonly decoupled: boolean
  /** Responses of one decoupled step that may be on their way to the caller before it is held up. */
  readonly maxInflight: number
  /** Receives the times at which the executions of the steps began and ended. */
  readonly trace: Trace
  /** The monotonic time in nanoseconds. */
  readonly nanos: () => number
  readonly runFork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Called once, unless it is cancelled. */
  readonly end: (outcome: Result.Result<Response, InferenceError>) => void
}

export class EnsembleRequest {
  readonly #options: EnsembleRequestOptions
  readonly #caller: CallerService
  readonly #root = new EnsembleFlow()
  readonly #cancels = new Set<Cancel>()
  /** Flows whose response or failure is ready, in the order in which the caller gets them. */
  readonly #ready: Array<EnsembleFlow> = []
  readonly #hasReady = Latch.makeUnsafe(false)
  #isExhausted = false
  #emission: Fiber.Fiber<void> | undefined
  #isOver = false

  constructor(options: EnsembleRequestOptions) {
    this.#options = options
    const { cycles, request } = options
    const { id, deadline: expiresAt, connection, trace } = request
    this.#caller = { cycles, id, expiresAt, connection, trace }
  }

  start(): void {
    const { request, graph } = this.#options
    const inputs = request.inputs.map((tensor, position) => {
      this.#root.set(position, tensor === undefined ? null : graph.reshapes.inputs(tensor, position))
      return position
    })
    this.#proceed(this.#root, inputs)
  }

  cancel(): void {
    if (!this.#isOver) this.#stop()
  }

  /** The deadline of the request has passed. */
  expire(): void {
    const { graph, request } = this.#options
    this.#finish(
      Result.fail(
        withEnsembleName(graph, new DeadlineExceeded({ message: `${errorPrefix(request)}Deadline Exceeded` })),
      ),
    )
  }

  /** Starts the steps that waited for these tensors. */
  #proceed(flow: EnsembleFlow, positions: ReadonlyArray<number>): void {
    const { waiting } = this.#options.graph
    for (const position of positions) {
      for (const step of waiting[position] ?? []) this.#startStep(flow, step)
    }
    this.#complete(flow)
  }

  /**
   * Starts a step at its level if its inputs are available. From a flow of an outer level, starts it for each response
   * below.
   */
  #startStep(flow: EnsembleFlow, step: LinkedStep): void {
    if (this.#isOver) return
    const { graph } = this.#options
    if (flow.level < step.level) {
      for (const child of flow.children.slice()) this.#startStep(child, step)
    } else if (!flow.started.has(step) && flow.has(step.needs, graph)) {
      flow.started.add(step)
      this.#submit(flow, step)
    }
  }

  #submit(flow: EnsembleFlow, step: LinkedStep): void {
    const { graph, request: outer, trace } = this.#options
    const { model } = step
    if (!model.life.isReady()) return this.#fail(notReady(model.description), flow)
    const inputs = step.inputs.map((position, index) => inputOf(graph, flow, model, position, index))
    const parameters = SequenceParameters.ofStep(outer.parameters, flow.parameters)
    const inherited = { id: outer.id, deadline: outer.deadline, connection: outer.connection, parameters }
    const preparedStep = StepRequest.make(model, inputs, inherited, step.requestedOutputs, trace)
    if (Result.isFailure(preparedStep)) return this.#fail(preparedStep.failure, flow)
    const request = model.calls.decoupled
      ? { ...preparedStep.success, emit: this.#emit(flow, step) }
      : preparedStep.success
    let hasReplied = false
    let cancel: Cancel | undefined = undefined
    if (model.calls.decoupled) flow.stop = () => cancel?.()
    cancel = callableBy(this.#caller, model).submit(request, (outcome) => {
      hasReplied = true
      if (cancel !== undefined) this.#cancels.delete(cancel)
      if (this.#isOver) return
      if (Result.isFailure(outcome)) return this.#fail(outcome.failure, flow, model.calls.decoupled)
      if (!model.calls.decoupled) return this.#take(flow, step, outcome.success)
      flow.isComplete = true
      this.#settled(flow)
      this.#release()
    })
    if (hasReplied) return
    if (this.#isOver) cancel()
    else this.#cancels.add(cancel)
  }

  /** Receives the responses of a decoupled step, and opens a level for each. */
  #emit(flow: EnsembleFlow, step: LinkedStep) {
    const { maxInflight } = this.#options
    return (response: Response): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (this.#isOver || flow.isComplete) return Effect.void
        const child = new EnsembleFlow(flow)
        flow.children.push(child)
        flow.pendingChildren += 1
        this.#take(child, step, response)
        if (this.#isOver || flow.isComplete || flow.pendingChildren < maxInflight) return Effect.void
        return Effect.callback<void>((resume) => {
          const release = () => resume(Effect.void)
          flow.resumes.add(release)
          return Effect.sync(() => flow.resumes.delete(release))
        })
      })
  }

  #take(flow: EnsembleFlow, step: LinkedStep, { outputs, parameters }: Response): void {
    const problem = SequenceParameters.problem(parameters)
    if (problem !== undefined) return this.#fail(problem, flow)
    flow.add(SequenceParameters.ofAnswer(parameters))
    flow.endsWithData = !step.model.calls.decoupled
    for (let index = 0; index < step.outputs.length; index++) {
      const position = step.outputs[index] ?? -1
      if (position >= 0) flow.set(position, outputs[index] ?? null)
    }
    this.#proceed(flow, step.outputs)
  }

  /** Completes the flow, or those at the levels below, where all outputs are there. */
  #complete(flow: EnsembleFlow): void {
    if (this.#isOver || flow.response !== undefined) return
    const { graph, decoupled } = this.#options
    if (flow.level < graph.depth) {
      for (const child of flow.children.slice()) this.#complete(child)
      return
    }
    if (!flow.has(graph.outputs, graph)) return
    const outputs: Array<TypedTensor | undefined> = []
    for (let index = 0; index < graph.outputs.length; index++) {
      const tensor = outputOf(graph, flow, index)
      const reshaped = tensor && graph.reshapes.outputs(tensor, index)
      if (reshaped && elementCount(reshaped.shape) !== elementCount(tensor.shape)) {
        return this.#fail(wrongShape(graph, index, tensor), flow)
      }
      outputs.push(reshaped)
    }
    const { parameters } = this.#options.request
    flow.response = { outputs, parameters: SequenceParameters.ofResponse(parameters, flow.parameters) }
    if (decoupled) return this.#release()
    this.#stop()
    this.#options.end(Result.succeed(flow.response))
  }

  /** Releases the next responses in order. */
  #release(): void {
    if (this.#isOver || this.#isExhausted) return
    this.#isExhausted = this.#releaseFrom(this.#root)
    if (this.#isExhausted && this.#emission === undefined && this.#ready.length === 0) return this.#finishEmpty()
    this.#hasReady.openUnsafe()
    if (this.#ready.length > 0) this.#emission ??= this.#options.runFork(this.#emitting)
  }

  /** Releases the responses of a flow to the caller; returns whether the flow has completed. */
  #releaseFrom(flow: EnsembleFlow): boolean {
    if (flow.response !== undefined) {
      this.#ready.push(flow)
      return true
    }
    while (flow.children[0] !== undefined && this.#releaseFrom(flow.children[0])) flow.children.shift()
    if (flow.children.length > 0) return false
    if (flow.failure !== undefined) this.#ready.push(flow)
    return flow.isComplete
  }

  get #emitting(): Effect.Effect<void> {
    const { emit } = this.#options.request
    const next: Effect.Effect<void, InferenceError> = Effect.suspend(() => {
      if (this.#isOver) return Effect.void
      const flow = this.#ready.shift()
      if (flow?.response !== undefined) {
        const emitted = () => {
          this.#settled(flow)
          return next
        }
        const isLast = flow.endsWithData && this.#isExhausted && this.#ready.length === 0
        return Effect.flatMap(emit?.(flow.response, isLast) ?? Effect.void, emitted)
      }
      if (flow?.failure !== undefined || this.#isExhausted) {
        // It ends by itself.
        this.#emission = undefined
        if (flow?.failure === undefined) this.#finishEmpty()
        else this.#finish(Result.fail(flow.failure))
        return Effect.void
      }
      this.#hasReady.closeUnsafe()
      return Effect.flatMap(this.#hasReady.await, () => next)
    })
    return Effect.catchCause(next, (cause) =>
      Effect.sync(() => {
        const failure = Cause.findError(cause)
        this.#emission = undefined
        // An exception of the caller's code.
        if (Result.isSuccess(failure)) this.#finish(Result.fail(failure.success))
        else if (!Cause.hasInterruptsOnly(cause)) {
          this.#finish(Result.fail(new ExecutionFailed({ message: String(Cause.squash(cause)) })))
        }
      }),
    )
  }

  /** The caller has all responses of this flow so far. */
  #settled(flow: EnsembleFlow): void {
    const { parent } = flow
    const isBelow = flow.response === undefined && !(flow.isComplete && flow.pendingChildren === 0)
    if (parent === undefined || isBelow) return
    parent.pendingChildren -= 1
    for (const resume of parent.resumes) {
      parent.resumes.delete(resume)
      resume()
    }
    this.#settled(parent)
  }

  #finishEmpty(): void {
    this.#finish(Result.succeed({ outputs: [], parameters: noParameters }))
  }

  /**
   * A step of the flow has failed; a decoupled one, `isLast`, after its responses. Later responses are dropped.
   */
  #fail(failure: InferenceError, flow: EnsembleFlow, isLast = false): void {
    const { graph, decoupled } = this.#options
    const error = withEnsembleName(graph, failure)
    // At once for a deadline: the caller may never take the responses before it.
    if (!decoupled || error._tag === "DeadlineExceeded") return this.#finish(Result.fail(error))
    if (!isLast) flow.children.length = 0
    flow.failure ??= error
    for (let above: EnsembleFlow | undefined = flow; above !== undefined; above = above.parent) {
      above.isComplete = true
      above.stop?.()
    }
    this.#release()
  }

  #finish(outcome: Result.Result<Response, InferenceError>): void {
    if (this.#isOver) return
    this.#stop()
    this.#options.end(outcome)
  }

  #stop(): void {
    this.#isOver = true
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
    this.#emission?.interruptUnsafe()
  }
}

/** The failure of a step, as the ensemble's caller sees it. */
const withEnsembleName = ({ definition }: EnsembleGraph, error: InferenceError): InferenceError => {
  const message = `in ensemble '${definition.name}', ${error.message}`
  return withMessage(error, message)
}

/** The failure of an output that does not fit its reshape. Variable dims pass the check of the configuration. */
const wrongShape = ({ definition: { inner, maxBatchSize } }: EnsembleGraph, index: number, tensor: TypedTensor) => {
  const { name, datatype, dims } = inner.outputs[index] ?? { name: "", datatype: tensor.datatype, dims: [] }
  const expected = print(datatype, maxBatchSize > 0 ? [-1, ...dims] : dims)
  const got = print(tensor.datatype, tensor.shape)
  return new ExecutionFailed({ message: `output '${name}': expected ${expected} for its reshape, got ${got}` })
}

const inputOf = (
  graph: EnsembleGraph,
  flow: EnsembleFlow,
  { description: { signature, maxBatchSize } }: RunningModel,
  position: number,
  index: number,
): TypedTensor | undefined => {
  const spec = signature.inputs[index]
  const tensor = position < 0 ? undefined : flow.get(position, graph)
  if (tensor === undefined || tensor === null || spec === undefined) return undefined
  return StepRequest.fitted(tensor, graph.batched[position] === true, spec, maxBatchSize > 0)
}

/** Undefined for an output that was not requested, or that its step has left out; in the shape of the steps. */
const outputOf = (graph: EnsembleGraph, flow: EnsembleFlow, index: number): TypedTensor | undefined => {
  const { inner, maxBatchSize } = graph.definition
  const spec = inner.outputs[index]
  const position = graph.outputs[index] ?? -1
  if (spec === undefined || position < 0) return undefined
  const tensor = flow.get(position, graph) ?? undefined
  return tensor && StepRequest.fitted(tensor, graph.batched[position] === true, spec, maxBatchSize > 0)
}
