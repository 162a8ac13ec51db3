/**
 * Models in code that come and go while servers run. Where they answer from is the registries' business, what they are made of
 * that of their layers, and models of a repository are the repository's.
 *
 *   load, replace:  turn of their names ─► layer is built, warm-up included ─► registries ─► those that they replace retire
 *                                          └─ fails: nothing of it stays, and what was there does
 *   unload:         turn of the name ─► out of the registries ─► retires
 *   (retires:       Retirement.ts)
 *
 * All that is loaded lives in one scope; a change that the end of this scope finds under way ends with it.
 */
import { Cause, Context, type Duration, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { Caller } from "../call/Caller.ts"
import type { DeclaredModel } from "../call/ModelClass.ts"
import { AlreadyExists, type InferenceError, InvalidRequest, Unavailable } from "../error/InferenceError.ts"
import type { Control, IndexEntry, LoadOverrides } from "./ModelRepository.ts"
import * as OpenRegistry from "./OpenRegistry.ts"
import * as Retirement from "./Retirement.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { within } from "./ScopedChange.ts"
import * as Turns from "./KeyedLock.ts"
import { reason } from "./Unavailable.ts"

/** The models that a layer is loaded for. */
export type Models = readonly [DeclaredModel, ...ReadonlyArray<DeclaredModel>]

export interface RetireOptions {
  /** How long a model that goes may take to answer what it has accepted. Default 30 seconds. */
  readonly drain?: Duration.Input
}

export interface UnloadOptions extends RetireOptions {
  /** Default: all that there are. */
  readonly version?: string | number
}

/** What a change is refused with; `E`, what the layer fails with, comes beside it. */
export type Refusal = AlreadyExists | InvalidRequest | Unavailable

/** How code loads models into the servers of a registry, and takes them out. */
export interface Loading {
  /**
   * Builds the layer, in a scope of its own, and serves these models of it; completes once they take requests. What the layer
   * needs comes from the caller, what it brings along is its own. A model of which this version is there already is an
   * AlreadyExists; a layer that cannot be built leaves nothing behind.
   */
  readonly load: <const M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
  ) => Effect.Effect<void, E | Refusal, R>
  /**
   * The same in the place of all versions that there are of these models, if any. They go on until the new ones take requests,
   * then answer what they have accepted, and only then end; who was given one of them asks the new one from now on. Where the
   * layer cannot be built, they stay.
   */
  readonly replace: <const M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
    options?: RetireOptions,
  ) => Effect.Effect<void, E | Refusal, R>
  /**
   * Loads a model of the server's model repository, where that is under explicit control, as its callers do over the wire.
   * Completes once it takes requests; a failure leaves what was there before.
   */
  readonly loadStored: (name: string, overrides?: Partial<LoadOverrides>) => Effect.Effect<void, InferenceError>
  /**
   * Takes a model out, which answers what it has accepted and ends; completes once it has. Code that the model waits for does
   * not wait for the model in return. Whoever was given the model is refused with ModelNotReady, until there is one of its name
   * again. A model of a repository under explicit control goes as its callers would have it go; no other of a repository does.
   */
  readonly unload: (name: string, options?: UnloadOptions) => Effect.Effect<void, InferenceError>
}

export interface Loader extends Loading {
  /**
   * Serves by this registry what is loaded, until the scope closes; with the last registry goes all that is loaded. `control` of
   * the server's repository, asked when it is needed.
   */
  readonly include: (
    registry: OpenRegistry.OpenRegistry,
    control?: () => Control | undefined,
  ) => Effect.Effect<void, AlreadyExists, Scope.Scope>
  /** Those of all registries. */
  readonly models: OpenRegistry.RegisteredModels
  /** What is not in the registries: models that come, that go, and the last that could not be loaded. */
  readonly index: () => ReadonlyArray<IndexEntry>
}

/** Failures that the index remembers. */
const mostFailures = 100

/** What is loaded lives at most as long as `outer`. */
export const make = (outer: Scope.Scope): Loader => {
  const turns = Turns.make()
  /** What is loaded while there is no server. */
  const base = OpenRegistry.make([])
  const included = new Map<OpenRegistry.OpenRegistry, () => Control | undefined>()
  let scope = Scope.forkUnsafe(outer)
  const retirement = Retirement.make()
  const statuses = new Map<string, IndexEntry>()
  const statusesOf = (name: string) => [...statuses.values()].filter((entry) => entry.name === name)
  const absent = (name: string) => statusesOf(name).flatMap(({ version }) => version ?? [])
  base.addAbsent(absent)

  const registries = () => (included.size > 0 ? [...included.keys()] : [base])
  const versionsOf: OpenRegistry.RegisteredModels["versions"] = (name) => {
    const [first, ...others] = registries().map((registry) => registry.versions(name))
    return first !== undefined && others.length === 0
      ? first
      : OpenRegistry.inOrder([...new Set([first ?? [], ...others].flat())])
  }
  const found = OpenRegistry.byVersion(versionsOf, (name) => registries().flatMap((registry) => registry.absent(name)))
  const register = (name: string, change: (versions: ReadonlyArray<RunningModel>) => ReadonlyArray<RunningModel>) => {
    for (const registry of [base, ...included.keys()]) registry.replace(name, change(registry.versions(name)))
  }

  const failuresOf = (name: string) => statusesOf(name).filter(({ state }) => state === "UNAVAILABLE")
  const control = (): Control | undefined => {
    for (const its of included.values()) {
      const control = its()
      if (control !== undefined) return control
    }
    return undefined
  }

  const setStatus = (entry: IndexEntry) => {
    statuses.set(keyOf(entry), entry)
    const failures = statuses.values().filter(({ state }) => state === "UNAVAILABLE")
    const [oldest, ...others] = failures
    if (oldest !== undefined && others.length >= mostFailures) statuses.delete(keyOf(oldest))
  }

  const bring = <M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<M[number]["Identifier"], E, R>,
    replaces: boolean,
    { drain = "30 seconds" }: RetireOptions,
  ): Effect.Effect<void, E | Refusal, R> => {
    const names = [...new Set(models.map(({ definition }) => definition.name))]
    const problem = () => {
      for (const [index, { definition }] of models.entries()) {
        const { name, version } = definition
        const its = versionsOf(name)
        if (its.some(isStored)) return new InvalidRequest({ message: storedProblem(name) })
        const isTwice = models.slice(0, index).some((other) => isSame(other.definition, definition))
        if (!isTwice && (replaces || !its.some((other) => isSame(other, definition)))) continue
        return new AlreadyExists({ message: `model '${name}' version ${version} is there already` })
      }
      return undefined
    }
    const refuse = Effect.suspend((): Effect.Effect<void, Refusal> => {
      const refusal = problem()
      return refusal === undefined ? Effect.void : Effect.fail(refusal)
    })
    const commit = (context: Context.Context<M[number]["Identifier"]>, own: Scope.Closeable) => {
      const brought = models.map((model) => Context.get(context, model).model)
      const before = names.flatMap(versionsOf)
      const gone = replaces ? before.filter((model) => !brought.includes(model)) : []
      for (const name of names) {
        for (const failure of failuresOf(name)) statuses.delete(keyOf(failure))
        const fresh = brought.filter((model) => model.name === name)
        register(name, (versions) => (replaces ? fresh : [...versions, ...fresh]))
      }
      retirement.moveIn(brought, own)
      return retire(gone, drain)
    }
    const change = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* refuse
        for (const { definition } of models) setStatus(entry(definition, "LOADING", ""))
        const own = yield* Scope.fork(scope)
        // Nothing of what is loaded is the server's before, so all of it is built anew.
        const built = Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), own).pipe(
          Effect.tap(refuse),
          // What asks for it may be a request, whose deadline is none of the model's.
          Effect.provideService(Caller, undefined),
        )
        const exit = yield* Effect.exit(restore(built))
        for (const { definition } of models) statuses.delete(keyOf(definition))
        if (Exit.isSuccess(exit)) return yield* commit(exit.value, own)
        yield* Scope.close(own, exit)
        if (!Cause.hasInterruptsOnly(exit.cause)) {
          for (const { definition } of models) setStatus(entry(definition, "UNAVAILABLE", reason(exit.cause)))
        }
        return yield* exit
      }),
    )
    return Effect.asVoid(within(scope, turns.take(names, change)))
  }

  /** They are out of the registries. */
  const retire = (gone: ReadonlyArray<RunningModel>, drain: Duration.Input): Effect.Effect<Fiber.Fiber<void>> => {
    const leaving = gone.map((model) => entry(model, "UNLOADING", ""))
    leaving.forEach(setStatus)
    return retirement.retire(gone, found.get, drain).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          for (const one of leaving) if (statuses.get(keyOf(one)) === one) statuses.delete(keyOf(one))
        }),
      ),
      Effect.forkIn(scope),
    )
  }

  const takeOut = (name: string, { version = "", drain = "30 seconds" }: UnloadOptions) =>
    Effect.gen(function* () {
      const versions = versionsOf(name)
      if (versions.some(isStored)) return yield* new InvalidRequest({ message: storedProblem(name) })
      const forgotten = failuresOf(name).filter((failure) => version === "" || failure.version === String(version))
      for (const failure of forgotten) statuses.delete(keyOf(failure))
      const asked = found.get(name, String(version))
      if (Result.isFailure(asked)) {
        if (forgotten.length > 0) return []
        return yield* asked.failure
      }
      const gone = version === "" ? versions : [asked.success]
      register(name, (versions) => versions.filter((model) => !gone.includes(model)))
      return [{ gone, over: yield* retire(gone, drain) }]
    })

  const closeScope = Effect.suspend(() => {
    const its = scope
    scope = Scope.forkUnsafe(outer)
    const gone = base.models
    return Effect.ensuring(
      Scope.close(its, Exit.void),
      Effect.sync(() => {
        for (const { name } of gone) register(name, (versions) => versions.filter((model) => !gone.includes(model)))
      }),
    )
  })

  return {
    load: (models, layer) => bring(models, layer, false, {}),
    replace: (models, layer, options = {}) => bring(models, layer, true, options),
    loadStored: (name, { files = new Map(), ...overrides } = {}) =>
      Effect.suspend(() => {
        const load = control()?.load(name, { ...overrides, files })
        const message = "there is no model repository under explicit control"
        return load ?? Effect.fail(new Unavailable({ message }))
      }),
    unload: Effect.fnUntraced(function* (name, options = {}) {
      if (versionsOf(name).some(isStored) && options.version === undefined) {
        const unload = control()?.unload(name, false)
        if (unload !== undefined) return yield* unload
      }
      const taken = yield* within(scope, turns.take([name], Effect.uninterruptible(takeOut(name, options))))
      const caller = yield* Caller
      for (const { gone, over } of taken) if (!Retirement.waitsFor(gone, caller?.asker)) yield* Fiber.await(over)
    }),
    include: (registry, control = () => undefined) =>
      Effect.acquireRelease(
        Effect.suspend(() => {
          for (const { name, version } of base.models) {
            if (Result.isSuccess(registry.get(name, version))) {
              return Effect.fail(new AlreadyExists({ message: `Model '${name}' version ${version} is given twice.` }))
            }
          }
          for (const { name } of base.models)
            registry.replace(name, [...registry.versions(name), ...base.versions(name)])
          included.set(registry, control)
          return Effect.succeed(registry.addAbsent(absent))
        }),
        (stop) =>
          Effect.andThen(
            Effect.suspend(() => (included.size === 1 ? closeScope : Effect.void)),
            Effect.sync(() => {
              stop()
              included.delete(registry)
            }),
          ),
      ),
    models: {
      get models() {
        return [...new Set(registries().flatMap(({ models }) => models))]
      },
      ...found,
    },
    index: () => [...statuses.values()].filter(({ name, version = "" }) => Result.isFailure(found.get(name, version))),
  }
}

const entry = (
  { name, version }: Pick<RunningModel, "name" | "version">,
  state: "LOADING" | "UNLOADING" | "UNAVAILABLE",
  reason: string,
): IndexEntry => ({ name, version, state, reason })

const keyOf = ({ name, version }: Pick<IndexEntry, "name" | "version">): string => `${version} ${name}`

const isSame = (one: Pick<RunningModel, "name" | "version">, other: Pick<RunningModel, "name" | "version">): boolean =>
  one.name === other.name && one.version === other.version

/** Whether it is of a repository. */
const isStored = ({ configuration }: RunningModel): boolean => configuration !== undefined

const storedProblem = (name: string) => `model '${name}' is of the model repository, which loads and unloads it`
