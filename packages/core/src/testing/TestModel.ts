/**
 * A model under test, without ports and sockets: built from its layer, with a server's scheduler and codecs, and a
 * journal of its batches. It uses the test clock. StartedModel.ts is the same by promises.
 */
import { Context, Effect, Layer, Scope } from "effect"
import { modelKeyPrefix } from "../call/ModelClass.ts"
import type { Inference } from "../call/Inference.ts"
import type { Sessions } from "../call/Session.ts"
import type { Fields } from "../model/Field.ts"
import type { Declared } from "../model/Declared.ts"
import { ModelStore } from "../lifecycle/ModelStore.ts"
import { ModelVersion } from "../lifecycle/ModelVersion.ts"
import { Registry } from "../lifecycle/Registry.ts"
import { Served } from "../lifecycle/Served.ts"
import { type RunningModel, Watcher } from "../running/RunningModel.ts"
import { type AnyModel, type Execution, Journal } from "./Journal.ts"
import * as WireCalls from "./WireCalls.ts"

/** The executions and calls over the wire of a model under test. */
interface TestedModel extends WireCalls.WireCalls {
  /** The batches that its instances were given so far, the first one first; also those that failed. */
  readonly executions: Effect.Effect<ReadonlyArray<Execution>>
  /**
   * Executions of another model that the layer provides, such as one that the model calls. Dies if there is no model of
   * this name.
   */
  readonly executionsOf: (model: AnyModel) => Effect.Effect<ReadonlyArray<Execution>>
}

/** A model under test: its typed calls, its calls over the wire, and its executions. */
export interface TestModel<I extends Fields, O extends Fields, P extends Declared = undefined>
  extends Inference<I, O, P>, TestedModel {}

/** A model with sequences under test: its sessions, its calls over the wire, and its executions. */
export interface TestSessions<I extends Fields, O extends Fields, P extends Declared = undefined>
  extends Sessions<I, O, P>, TestedModel {}

/** The model of which this is the class. */
export type ModelOf<Self> = Self extends { readonly Service: Inference<infer I, infer O, infer P> }
  ? TestModel<I, O, P>
  : Self extends { readonly Service: Sessions<infer I, infer O, infer P> }
    ? TestSessions<I, O, P>
    : never

/**
 * Builds the model that a layer provides; `service` selects one if the layer provides several.
 *
 * ```ts
 * it.effect("a request waits for others, 5 ms at most", () =>
 *   Effect.gen(function* () {
 *     const model = yield* Testing.model(AddSubLive)
 *     yield* Effect.forEach(samples, (sample) => Effect.forkChild(model.infer(sample)))
 *     yield* Testing.advance("5 millis")
 *     expect(yield* model.executions).toEqual([{ rows: 3, requests: 3 }])
 *   }))
 * ```
 *
 * Every call builds a new instance of the layer, which the end of the scope unloads.
 */
export const model = <Provides, E, R, Self extends Provides = Provides, S extends Callable = ServiceOf<Self>>(
  layer: Layer.Layer<Provides, E, R>,
  service?: Context.Key<Self, S>,
): Effect.Effect<ModelOf<{ readonly Service: S }>, E, R | Scope.Scope> =>
  // The service of a model's class has its types.
  Effect.map(untyped(layer, service), (model) => model as object as ModelOf<{ readonly Service: S }>)

/** The service of a class that `Model.Service` makes. A model of `Model.bind` has no class: pass it as `service`. */
export type ServiceOf<Self> = Self extends { readonly Service: infer S extends Callable } ? S : never

/** Any service that calls a model. */
export interface Callable {
  readonly model: RunningModel
}

/** The class of a model, as `Model.Service` makes it. */
export type Which<Self> = Context.Key<Self, Callable>

export const untyped = Effect.fnUntraced(function* <Provides, E, R, Self extends Provides>(
  layer: Layer.Layer<Provides, E, R>,
  service: Which<Self> | undefined,
): Effect.fn.Return<TestModel<Fields, Fields> | TestSessions<Fields, Fields>, E, R | Scope.Scope> {
  const journal = new Journal()
  // A separate memo map, because layers that the test has built before are not observed.
  const memoMap = Layer.makeMemoMapUnsafe()
  const scope = yield* Scope.Scope
  const served = Context.get(yield* Layer.buildWithMemoMap(Registry.layer, memoMap, scope), Served)
  const store = new ModelStore()
  const build = Layer.buildWithMemoMap(layer, memoMap, scope)
  const context = yield* Effect.provideService(build, Watcher, (model) => {
    const { name } = model.description
    store.serve(name, [...store.serving(name), ModelVersion.ready(model)])
    journal.watch(model)
  })
  yield* Effect.orDie(served.include(store))
  const inference = pick(context, service?.key)
  return {
    ...inference,
    ...WireCalls.make(inference.model),
    executions: Effect.sync(() => journal.find(inference.model.description) ?? []),
    executionsOf: ({ definition }) => Effect.sync(() => journal.of(definition)),
  }
})

type Calls = Inference<Fields, Fields> | Sessions<Fields, Fields>

/** The model of this key; without one, the only model there is. */
const pick = (context: Context.Context<never>, key: string | undefined): Calls => {
  const services: ReadonlyMap<string, Calls> = context.mapUnsafe
  const models = [...services].filter(([other]) => other.startsWith(modelKeyPrefix))
  const [found, ...others] = models.filter(([other]) => key === undefined || key === other)
  if (found !== undefined && others.length === 0) return found[1]
  const names = models.map(([other]) => other.slice(modelKeyPrefix.length)).join(", ")
  if (found !== undefined) throw new TypeError(`The layer provides ${names}: say which of them is to be tested.`)
  const subject = key === undefined ? "model" : `model '${key.slice(modelKeyPrefix.length)}'`
  throw new TypeError(`The layer provides no ${subject}${names === "" ? "" : `, but ${names}`}.`)
}
