/**
 * Calls of other models by the code of a model in Python ("business logic scripting"). Each is a request by itself, as
 * if it came over the wire: it is validated, waits in the queue of its model, shares batches and is counted there. The
 * messages are those of Triton's Python backend.
 */
import { Clock, type Context, Effect, Exit, Option, Result, type Tracer } from "effect"
import { constVoid } from "effect/Function"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Headers from "effect/http/Headers"
import { Cancelled, type InferenceError, InvalidRequest, ModelNotFound, Unsupported } from "@nereid/core/Errors"
import { callableBy } from "@nereid/core/internal/call/Caller"
import type { CallCycleDetector } from "@nereid/core/internal/request/CallCycleDetector"
import { notReady } from "@nereid/core/internal/error/Refusal"
import type { Cancel, NamedTensor, Response } from "@nereid/core/internal/request/Request"
import { RequestSpan, tracerOf } from "@nereid/core/internal/request/RequestSpan"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { type Validated, validate } from "@nereid/core/internal/wire/Validation"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import type { CallResponse, CallResponses, ModelCall, ModelPorts } from "../process/ModelPorts.ts"

/** The model whose code calls. */
export interface CallingModel {
  readonly cycles: CallCycleDetector
  /** Whether one of its instances would execute a further batch now. */
  readonly hasFreeInstance: () => boolean
}

/** Finds a model by its name and version, which is empty for the highest one. */
export type FindModel = (name: string, version: string) => Result.Result<RunningModel, InferenceError>

export const make = (find: FindModel, caller: CallingModel, context: Context.Context<never>): ModelPorts["call"] => {
  const tracer = tracerOf(context)
  const clock = Effect.runSyncWith(context)(Effect.withFiber((fiber) => Effect.succeed(fiber.getRef(Clock.Clock))))
  return (call, responses) => {
    const found = find(call.model, call.version)
    if (Result.isFailure(found)) return refuse(call, responses, found.failure)
    const model = found.success
    const { calls, description, life } = model
    if (!life.isReady()) return refuse(call, responses, notReady(description))
    if (calls.decoupled && !call.decoupled) {
      return refuse(call, responses, new Unsupported({ message: onlyDecoupled(call) }))
    }
    const wire = wireOf(call, description.version)
    const validated = validate(description, wire, undefined)
    if (Result.isFailure(validated)) {
      description.statistics.failed("OTHER", 0)
      return refuse(call, responses, validated.failure)
    }
    const span = tracer && new RequestSpan({ tracer, clock, ...spanOf(call) })
    return submit(model, validated.success, responses, { caller, span })
  }
}

interface Submission {
  readonly caller: CallingModel
  readonly span: RequestSpan | undefined
}

const submit = (
  model: RunningModel,
  validated: Validated,
  responses: CallResponses,
  { caller, span }: Submission,
): Cancel => {
  const { cycles } = caller
  // Its own free instance executes the call at once, so the caller does not wait for itself.
  const isSafe = model.calls.cycles === cycles && caller.hasFreeInstance()
  const service = { cycles: isSafe ? undefined : cycles, id: "", expiresAt: undefined }
  const callable = callableBy(service, model)
  const respond = (response: Response, isLast: boolean) =>
    responses.respond(responseOf(model, validated, response), isLast)
  let isOver = false
  const finish = (error?: InferenceError) => {
    if (isOver) return
    isOver = true
    span?.end(error === undefined ? Exit.void : Exit.fail(error))
    responses.end(error)
  }
  let hasLast = false
  const { request } = validated
  const traced = span === undefined ? request : { ...request, trace: span }
  const submitted = callable.emits
    ? {
        ...traced,
        takesErrors: true,
        emit: (response: Response, isLast = false) =>
          Effect.suspend(() => {
            if (isOver) return Effect.void
            if (response.error !== undefined) return responses.fail(response.error)
            hasLast ||= isLast
            return respond(response, isLast)
          }),
      }
    : traced
  const cancel = callable.submit(submitted, (outcome) => {
    if (Result.isFailure(outcome)) return finish(outcome.failure)
    // It is the only one, so nothing waits for its reader.
    if (!callable.emits && !isOver) Effect.runSync(respond(outcome.success, true))
    else if (!hasLast) return finish()
    isOver = true
    span?.end(Exit.void)
  })
  return () => {
    cancel()
    finish(new Cancelled({ message: "the call was cancelled by its caller" }))
  }
}

const wireOf = ({ model, id, inputs, parameters, requestedOutputs }: ModelCall, modelVersion: string): WireRequest => ({
  modelName: model,
  modelVersion,
  id,
  parameters,
  inputs: inputs.map(({ name, tensor: { datatype, shape, bytes } }) => ({ name, datatype, shape, bytes })),
  outputs: requestedOutputs.map((name) => ({ name, binary: undefined })),
})

const responseOf = (
  { description: { name, version, signature } }: RunningModel,
  { outputs }: Validated,
  response: Response,
): CallResponse => {
  const tensors: Array<NamedTensor> = []
  for (const { position } of outputs) {
    const spec = signature.outputs[position]
    const tensor = response.outputs[position]
    if (spec === undefined || tensor === undefined) continue
    tensors.push({ name: spec.name, tensor: new TypedTensor(tensor.datatype, tensor.shape, tensor.bytes) })
  }
  return { model: name, version, outputs: tensors, parameters: response.parameters }
}

/** A call with the trace of a request is below the span of that request. */
const spanOf = ({ model, trace }: ModelCall) => ({
  name: `infer ${model}`,
  kind: "internal" as const,
  parent: trace === undefined ? undefined : parentOf(trace),
  attributes: { "nereid.model": model },
})

const parentOf = (trace: string): Tracer.ExternalSpan | undefined => {
  const traceparent = /"traceparent"\s*:\s*"([^"]*)"/.exec(trace)?.[1]
  if (traceparent === undefined) return undefined
  return Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent })))
}

const end = (responses: CallResponses, error: InferenceError): Cancel => {
  responses.end(error)
  return constVoid
}

const refuse = ({ model }: ModelCall, responses: CallResponses, error: InferenceError): Cancel => {
  const prefix = `Model ${model} - Error when running inference: `
  switch (error._tag) {
    case "ModelNotFound":
      return end(responses, new ModelNotFound({ message: prefix + error.message }))
    case "InvalidRequest":
      return end(responses, new InvalidRequest({ message: prefix + error.message }))
    case "Unsupported":
      return end(responses, new Unsupported({ message: prefix + error.message }))
    case "ModelNotReady": {
      const message = `${prefix}Failed for execute the inference request. Model '${model}' is not ready.`
      return end(responses, new Unsupported({ message }))
    }
    default:
      return end(responses, error)
  }
}

const onlyDecoupled = ({ model }: ModelCall) =>
  `Model ${model} is using the decoupled. The current BLS request call doesn't support models using the decoupled ` +
  "transaction policy. Please use " +
  "'decoupled=True' argument to the 'exec' or 'async_exec' calls for decoupled models."
