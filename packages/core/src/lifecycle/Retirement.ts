/**
 * Retires versions that requests no longer reach: they finish their accepted requests, then their instances end. The
 * last version of a build also releases the build's other resources. Typed callers that still hold the model are
 * redirected to its successor.
 */
import { Duration, Effect, Option, Result } from "effect"
import { constVoid } from "effect/Function"
import { notReady } from "../error/Refusal.ts"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import * as ModelLife from "../running/ModelLife.ts"
import { RunningModel, type Successor } from "../running/RunningModel.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import type { RegisteredModels } from "./ModelLookup.ts"
import type { ModelVersion } from "./ModelVersion.ts"

/**
 * Completes once all of them have ended, after `drain` at the latest; `find` returns what requests reach in their
 * place. Among themselves they go on as they were.
 */
export const retire = Effect.fn("Retirement.retire")(function* (
  versions: ReadonlyArray<ModelVersion>,
  find: RegisteredModels["get"],
  drain: Duration.Input,
) {
  const models = versions.flatMap(({ running }) => running ?? [])
  const leaving = new Set(models.flatMap(({ calls }) => calls.cycles ?? []))
  for (const version of versions) version.drain()
  for (const { life } of models) life.retire()
  for (const model of models) model.setSuccessor(successor(model, leaving, find))
  // Models may call each other, so each round waits for all; every round completes at least one.
  const round = Effect.forEach(models, ({ life }) => life.drained, { discard: true })
  const drained = yield* Effect.timeoutOption(
    Effect.forEach(models, () => round, { discard: true }),
    drain,
  )
  for (const version of versions) {
    const name = `Model '${version.name}' version ${version.version}`
    if (Option.isNone(drained)) {
      const limit = Duration.format(Duration.fromInputUnsafe(drain))
      yield* Effect.logWarning(`${name} still had requests in flight after ${limit}; unloading without them`)
    }
    yield* end(version, name)
  }
})

/** The end of a version that has drained. What its release fails with is logged. */
export const end = (version: ModelVersion, name: string): Effect.Effect<void> =>
  version.release.pipe(
    Effect.catchCause((cause) => Effect.logError(`${name} failed while unloading`, cause)),
    Effect.andThen(Effect.sync(() => version.end())),
  )

/** Whether the models wait, directly or not, for a call to the caller: then the caller must not wait for their end. */
export const wouldDeadlock = (versions: ReadonlyArray<ModelVersion>, caller: CallCycleDetector | undefined): boolean =>
  versions.some(({ running }) => {
    const cycles = running?.calls.cycles
    if (caller === undefined || cycles === undefined) return false
    if (caller.begin(cycles) !== undefined) return true
    caller.end(cycles)
    return false
  })

const successor = (
  model: RunningModel,
  leaving: ReadonlySet<CallCycleDetector>,
  find: RegisteredModels["get"],
): Successor => {
  const { name, version } = model.description
  let known: { readonly found: RunningModel; readonly reached: RunningModel } | undefined
  return (caller) => {
    if (caller !== undefined && leaving.has(caller)) return model
    const found = Result.getOrUndefined(Result.orElse(find(name, version), () => find(name, "")))
    if (found === undefined) return refusingModel(model, notReady(model.description))
    if (known?.found === found) return known.reached
    const other = `model '${name}' was replaced by a model with different inputs or outputs`
    const reached = isAlike(model, found) ? found : refusingModel(model, new ExecutionFailed({ message: other }))
    known = { found, reached }
    return reached
  }
}

/** The model in a form that refuses all requests. */
const refusingModel = ({ description, calls, life }: RunningModel, error: InferenceError): RunningModel =>
  new RunningModel({
    description,
    calls: {
      decoupled: calls.decoupled,
      emits: calls.emits,
      keepsInputs: calls.keepsInputs,
      copiesInputs: calls.copiesInputs,
      timeout: calls.timeout,
      cycles: undefined,
      submit: (_, reply) => {
        reply(Result.fail(error))
        return constVoid
      },
    },
    life: ModelLife.make({ isReady: () => false, pending: life.pending, drained: life.drained }),
  })

/** Whether callers of one may call the other. */
const isAlike = (one: RunningModel, other: RunningModel): boolean => {
  const [left, right] = [one.description, other.description]
  return (
    one.calls.decoupled === other.calls.decoupled &&
    left.maxBatchSize > 0 === right.maxBatchSize > 0 &&
    left.maxBatchSize <= right.maxBatchSize &&
    shape(one) === shape(other)
  )
}

const shape = ({ description: { signature } }: RunningModel): string =>
  JSON.stringify([signature.inputs, signature.outputs].map((specs) => specs.map(spec)))

const spec = ({ name, datatype, dims, optional }: TensorSpec) => [name, datatype, dims, optional]
