/** Traces the calls that the code of a model, or an ensemble, makes to another model. Caller.ts makes the calls. */
import { Effect, Result } from "effect"
import type { NamedTensor, Response, Trace } from "../request/Request.ts"
import type { CallableModel } from "../running/CallableModel.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

/** Each call is a child of the trace. */
export const withChildTrace = (
  child: NonNullable<Trace["child"]>,
  { name, version, signature }: ModelDescription,
  model: CallableModel,
): CallableModel => ({
  emits: model.emits,
  decoupled: model.decoupled,
  submit: (request, reply) => {
    const trace = child({ model: name, version, id: request.id })
    const responded = ({ outputs }: Response) => trace.responded(named(signature.outputs, outputs))
    const { emit } = request
    const emitting =
      emit &&
      ((response: Response, isLast?: boolean) =>
        Effect.suspend(() => {
          responded(response)
          return emit(response, isLast)
        }))
    trace.begin(named(signature.inputs, request.inputs))
    const traced = { ...request, trace: merge(request.trace, trace), ...(emitting && { emit: emitting }) }
    const cancel = model.submit(traced, (outcome) => {
      if (Result.isSuccess(outcome)) responded(outcome.success)
      trace.end()
      reply(outcome)
    })
    return () => {
      cancel()
      trace.end()
    }
  },
})

const merge = (one: Trace | undefined, other: Trace): Trace =>
  one === undefined
    ? other
    : {
        at: (point, nanos) => {
          one.at(point, nanos)
          other.at(point, nanos)
        },
        activity: (name, nanos) => other.activity?.(name, nanos),
        child: other.child?.bind(other),
      }

const named = (
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): ReadonlyArray<NamedTensor> =>
  specs.flatMap(({ name }, position) => {
    const tensor = tensors[position]
    return tensor === undefined ? [] : [{ name, tensor }]
  })
