/**
 * The end of models that have left the registries: they answer what they have accepted, then their instances end, and with the
 * last model of a layer goes all that the layer has brought. Callers that hold on to such a model are passed on.
 */
import { Duration, Effect, Exit, Option, Result, Scope } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import { notReady } from "../call/NamedCalls.ts"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { RegisteredModels } from "./OpenRegistry.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"

export interface Retirement {
  /** These models, all that one layer has brought, are what keeps its scope open. */
  readonly moveIn: (models: ReadonlyArray<RunningModel>, scope: Scope.Closeable) => void
  /**
   * Completes once all of them have ended, `drain` after they have left the registries at the latest; `find` tells who is in
   * there in their place. Among themselves they go on as they were.
   */
  readonly retire: (
    models: ReadonlyArray<RunningModel>,
    find: RegisteredModels["get"],
    drain: Duration.Input,
  ) => Effect.Effect<void>
}

interface Household {
  readonly scope: Scope.Closeable
  readonly models: Set<RunningModel>
}

export const make = (): Retirement => {
  const households = new WeakMap<RunningModel, Household>()

  const end = Effect.fnUntraced(function* (model: RunningModel) {
    if (model.release !== undefined) yield* model.release
    const household = households.get(model)
    household?.models.delete(model)
    if (household?.models.size === 0) yield* Scope.close(household.scope, Exit.void)
  })

  return {
    moveIn: (models, scope) => {
      const household: Household = { scope, models: new Set(models) }
      for (const model of models) households.set(model, household)
    },
    retire: Effect.fnUntraced(function* (models, find, drain) {
      const askers = new Set(models.flatMap(({ asker }) => asker ?? []))
      for (const model of models) model.successor = successor(model, askers, find)
      // They may ask each other until none of them has anything left: one of them is done with each round.
      const round = Effect.forEach(models, ({ drained }) => drained, { discard: true })
      const drained = yield* Effect.timeoutOption(
        Effect.forEach(models, () => round, { discard: true }),
        drain,
      )
      for (const model of models) {
        if (Option.isNone(drained)) {
          const limit = Duration.format(Duration.fromInputUnsafe(drain))
          yield* Effect.logWarning(`${print(model)} was still answering requests after ${limit}, and ends without them`)
        }
        yield* Effect.catchCause(end(model), (cause) =>
          Effect.logError(`${print(model)} has failed as it ended`, cause),
        )
      }
    }),
  }
}

/** Whether the models wait, by others or without, for what this code answers: then it must not wait for their end. */
export const waitsFor = (models: ReadonlyArray<RunningModel>, code: CallCycleDetector | undefined): boolean =>
  models.some(({ asker }) => {
    if (code === undefined || asker === undefined) return false
    if (code.begin(asker) !== undefined) return true
    code.end(asker)
    return false
  })

const successor = (
  model: RunningModel,
  gone: ReadonlySet<CallCycleDetector>,
  find: RegisteredModels["get"],
): NonNullable<RunningModel["successor"]> => {
  const { name, version } = model
  let known: { readonly found: RunningModel; readonly answers: RunningModel } | undefined
  return (caller) => {
    if (caller !== undefined && gone.has(caller)) return model
    const found = Result.getOrUndefined(Result.orElse(find(name, version), () => find(name, "")))
    if (found === undefined) return refusing(model, notReady(model))
    if (known?.found === found) return known.answers
    const other = `model '${name}' has been replaced by one with other inputs or outputs than its caller knows`
    const answers = isAlike(model, found) ? found : refusing(model, new ExecutionFailed({ message: other }))
    known = { found, answers }
    return answers
  }
}

const refusing = (model: RunningModel, error: InferenceError): RunningModel => ({
  ...model,
  asker: undefined,
  isReady: () => false,
  submit: (_, reply) => {
    reply(Result.fail(error))
    return () => {}
  },
})

/** Whether a caller of one may ask the other. */
const isAlike = (one: RunningModel, other: RunningModel): boolean =>
  one.decoupled === other.decoupled &&
  one.maxBatchSize > 0 === other.maxBatchSize > 0 &&
  one.maxBatchSize <= other.maxBatchSize &&
  shape(one) === shape(other)

const shape = ({ signature: { inputs, outputs } }: RunningModel): string =>
  JSON.stringify([inputs, outputs].map((specs) => specs.map(spec)))

const spec = ({ name, datatype, dims, optional }: TensorSpec) => [name, datatype, dims, optional]

const print = ({ name, version }: RunningModel): string => `Model '${name}' version ${version}`
