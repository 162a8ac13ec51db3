/**
 * Runs user code as instances: the part shared by all handlers. The kinds of handlers are in EachHandler.ts,
 * BatchHandler.ts, RequestsHandler.ts and StreamHandler.ts.
 */
import * as Batch from "../batch/Batch.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import { Cause, Clock, Context, Effect, Layer, Result, Scope, Tracer } from "effect"
import { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { HandlerEnvironment } from "../call/Caller.ts"
import { originOf } from "../model/DeclaredErrors.ts"
import type { Definition } from "../model/Definition.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import {
  DeclaredFailure,
  ExecutionFailed,
  InvalidRequest,
  type InferenceError,
  isInferenceError,
  Unrecoverable,
} from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import { Hosting } from "../instance/Hosting.ts"
import { errorPrefix, type Request } from "../request/Request.ts"
import { defaultInterruptTimeout, type ExecutionResult, type Instance } from "../instance/Instance.ts"
import { InstanceContext } from "../instance/InstanceContext.ts"
import * as InstancePlan from "../instance/InstancePlan.ts"
import type * as InstanceSet from "../instance/InstanceSet.ts"
import type { Declared } from "../model/Declared.ts"
import * as Provide from "../provide/Provide.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import type * as SampleCodec from "../model/SampleCodec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import * as UserCode from "./UserCode.ts"

/** Options of a model in code. */
export interface HandlerOptions<I extends Fields = Fields> extends Provide.ServingOptions<I> {
  /**
   * Number of instances, each of which builds a handler and executes one batch at a time; or a list of groups, such as
   * one per device. A layer in the list is one instance with separate services. Default 1.
   */
  readonly instances?: InstancePlan.InstancesOption
  /**
   * Whether tensors of a request may be used after its answer, as by a handler that compares a picture with the one
   * before. Where not, the memory of large ones is freed once the answer is sent, and they are empty from then on: up
   * to a quarter less CPU time for pictures of 600 KB. Default true.
   */
  readonly keepsInputs?: boolean
}

/** Options of a layer whose handlers stream: nothing keeps their responses. */
export type StreamOptions<I extends Fields = Fields> = Omit<HandlerOptions<I>, "responseCache">

/**
 * Services that the layer requires: those of building and handling, except those that the layer or its instances
 * provide.
 */
export type Needs<RMake, RHandle, Options> =
  | Exclude<Exclude<RMake, Scope.Scope> | RHandle, InstanceContext | InstancePlan.Provided<Options>>
  | InstancePlan.Needs<Options>

/** Errors of building the layer, except for the handler's own. */
export type Failure<Options> = Provide.Failure<Options> | InstancePlan.Failure<Options>

/**
 * The instances of a handler: each builds its own, and runs it with the services of the layer, `concurrency` at once.
 */
export const instances = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  H,
  EMake,
  RMake,
  R,
  P extends Declared,
  Options extends HandlerOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  make: Effect.Effect<H, EMake, RMake> | H,
  options: GivenOptions<Options, HandlerOptions<I>> | GivenOptions<Options, StreamOptions<I>> | undefined,
  execute: (handler: H, context: Context.Context<R>, handling: HandlerEnvironment) => Instance["execute"],
  {
    concurrency = 1,
    hasSequences = false,
    takesJoined = false,
    ...more
  }: {
    readonly concurrency?: number
    /** Whether the handler gets the states of sequences. Default false. */
    readonly hasSequences?: boolean
    /** As in Instance. */
    readonly takesJoined?: boolean
  } & Pick<Provide.InstancesOptions<EMake, RMake>, "decoupled" | "granularity" | "isStepwise" | "sequencing"> = {},
): Layer.Layer<Self, EMake | Failure<Options>, Needs<RMake, R, Options>> => {
  const { name, version, responseParameters, state } = model.definition
  if (hasSequences !== (state !== undefined)) {
    const problem = hasSequences ? "declares no sequence" : "has sequences: provide it with Model.sequence"
    throw new TypeError(`Model "${name}" ${problem}.`)
  }
  const { instances: option, keepsInputs = true }: HandlerOptions<I> = options ?? {}
  const plan = InstancePlan.make(name, version, option)
  const parameterCodec = responseParameters && ParameterFields.make(responseParameters)
  const source = Effect.gen(function* () {
    const cycles = new CallCycleDetector(name)
    const clock = yield* Clock.Clock
    const build = Effect.fnUntraced(function* (planned: InstancePlan.PlannedInstance) {
      const shared = yield* Effect.context<never>()
      const scope = yield* scopeOf(planned.details.name)
      const details = Context.get(shared, Hosting) ?? planned.details
      const services = yield* instanceServices({ ...planned, details }, shared, scope)
      const handler = Effect.isEffect(make) ? yield* provided(make, services) : make
      // The handler's spans belong to the traces of requests, and not to that of the load.
      const context = Context.omit(Tracer.ParentSpan)(services)
      // The services of handling are those of the layer and of the instance, as its type has it.
      const run = execute(handler, context as Context.Context<R>, {
        instance: details.name,
        cycles,
        clock,
        context,
        responseParameters: parameterCodec,
      })
      return {
        name: planned.details.name,
        concurrency,
        cycles,
        interruptsRequests: true,
        interruptTimeout: defaultInterruptTimeout,
        takesJoined,
        status: () => "available",
        onStatusChange: () => {},
        execute: keepsInputs ? (batch, settle) => run(Batch.withLastingInputs(batch), settle) : run,
      } satisfies Instance
    })
    return { plan, build }
  })
  // The types above limit errors and requirements to those of `make` and of the layers of instances.
  type Failures = EMake | InstancePlan.Failure<Options>
  type Services = Needs<RMake, R, Options> | Scope.Scope
  const instances = source as Effect.Effect<InstanceSet.InstanceSource<Failures, Services>>
  const providedBy = { platform: "nereid", ...more, keepsInputs, copiesInputs: keepsInputs, instances }
  return Provide.fromInstances<Self, N, I, O, P, Failures, Services, Options>(model, providedBy, options)
}

/**
 * The scope of an instance, closed when the model unloads or when another instance cannot be built. Failures of
 * finalizers are logged and do not stop other releases.
 */
const scopeOf = (instance: string) =>
  Effect.acquireRelease(Scope.make(), (scope, exit) =>
    Effect.catchCause(Scope.close(scope, exit), (cause) =>
      Effect.logError(`Instance ${instance} failed while it was released`, cause),
    ),
  )

/** The services of one instance: the shared ones, those of its layer, and its InstanceContext. */
const instanceServices = Effect.fnUntraced(function* (
  { layer, details }: InstancePlan.PlannedInstance,
  shared: Context.Context<never>,
  scope: Scope.Scope,
) {
  const context = shared.pipe(Context.add(Scope.Scope, scope), Context.add(InstanceContext, details))
  if (layer === undefined) return context
  // Not shared with other instances that have the same layer.
  const build = Layer.buildWithMemoMap(Layer.fresh(layer), Layer.makeMemoMapUnsafe(), scope)
  return Context.merge(context, yield* provided(build, context))
})

/** Provides services that the types do not distinguish. */
const provided = <A, E, R>(effect: Effect.Effect<A, E, R>, context: Context.Context<never>): Effect.Effect<A, E> =>
  Effect.provideContext(effect, context as Context.Context<R>)

/** The part of a model's definition that its errors need. */
export type ModelErrors = Pick<Definition<Fields, Fields>, "name" | "errors">

/**
 * A handler's failure as the caller sees it. Errors of the protocol, and errors that a model declares, keep their tags,
 * also through a chain of models that do not declare them.
 */
export const instanceError = (model: ModelErrors, instance: string, error: unknown): InferenceError => {
  const raised = error instanceof UserCode.ThrownError ? error.error : error
  return knownError(model, raised) ?? unprocessed(instance, errorText(raised))
}

/** The same of a failure that a handler has returned for one request. */
export const requestError = (model: ModelErrors, error: unknown): InferenceError =>
  knownError(model, error) ?? new ExecutionFailed({ message: errorText(error) })

const knownError = ({ errors }: ModelErrors, error: unknown): InferenceError | undefined =>
  isInferenceError(error) ? error : (errors?.encode(error) ?? originOf(error))

/** In the words of Triton's Python backend. */
const unprocessed = (instance: string, message: string) =>
  new ExecutionFailed({
    message: `Failed to process the request(s) for model '${instance}', message: ${message}`,
  })

/** An error of the user's own may have no message, and then is known by its tag or its name. */
const errorText = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return String(error)
  for (const key of ["message", "_tag", "name"]) {
    const found: unknown = Reflect.get(error, key)
    if (typeof found === "string" && found !== "") return found
  }
  // Not its own toString, which it need not have.
  return Object.prototype.toString.call(error)
}

/**
 * The error for the caller, and the part of the cause to log. The same rule applies whether code throws in a function,
 * in a promise or in an effect. The caller receives the message; the cause of an undeclared failure, with its stack, is
 * logged.
 */
export const failure = (
  model: ModelErrors,
  instance: string,
  cause: Cause.Cause<unknown>,
): { readonly error: InferenceError; readonly unexpected: Cause.Cause<unknown> | undefined } => {
  for (const reason of cause.reasons) {
    if (Cause.isDieReason(reason) && reason.defect instanceof Unrecoverable) {
      return { error: reason.defect, unexpected: undefined }
    }
  }
  const found = failureOf(cause)
  // An interruption has no error to return.
  if (Result.isFailure(found)) return { error: unprocessed(instance, "see the server log"), unexpected: cause }
  const raised = found.success
  const error = instanceError(model, instance, raised)
  // The error may be unintended, so it is logged with its stack, unless it is one of Errors or declared.
  const original = raised instanceof UserCode.ThrownError ? raised.error : error
  const isKnown = original === error || error instanceof DeclaredFailure
  return { error, unexpected: isKnown ? undefined : Cause.fail(original) }
}

const failureOf = (cause: Cause.Cause<unknown>): Result.Result<unknown, unknown> => {
  const found = Cause.findError(cause)
  if (Result.isSuccess(found)) return found
  const died = cause.reasons.find(Cause.isDieReason)
  return died === undefined ? found : Result.succeed(new UserCode.ThrownError(died.defect))
}

export const logUnexpected = (model: string, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.logError(`The handler of model '${model}' failed`, cause)

export const wrongInput = (model: string, request: Request, { field, message }: SampleCodec.SampleError) =>
  new InvalidRequest({ message: `${errorPrefix(request)}input '${field}' of model '${model}': ${message}` })

export const wrongOutput = (model: string, { field, message }: SampleCodec.SampleError) =>
  new ExecutionFailed({ message: `output '${field}' of model '${model}': ${message}` })

export const executionResult = (outcomes: ExecutionResult["outcomes"]): ExecutionResult => ({
  outcomes,
  inputDuration: 0,
  outputDuration: 0,
})

/** Removes the undefined type; outputs are never optional, so none is missing after successful encoding. */
export const present = (tensors: ReadonlyArray<TypedTensor | undefined>): ReadonlyArray<TypedTensor> =>
  tensors.filter((tensor) => tensor !== undefined)
