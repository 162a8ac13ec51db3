/**
 * Loads and unloads models in code while servers run: a source of the life cycle (Lifecycle.ts). The stores determine
 * which models requests reach. Models of a repository belong to the repository.
 *
 *   load, replace:  names held ─► the layer is built, warm-up included ─► served ─► replaced models retire
 *                                 └─ fails: the build is released, and earlier models remain
 *   unload:         name held ─► not served any more ─► retires
 */
import { Context, type Duration, Effect, Exit, Fiber, Layer, Result, Scope } from "effect"
import { Caller } from "../call/Caller.ts"
import type { DeclaredModel } from "../call/ModelClass.ts"
import { AlreadyExists, type InferenceError, InvalidRequest, Unavailable } from "../error/InferenceError.ts"
import { KeyedLock } from "./KeyedLock.ts"
import { Lifecycle } from "./Lifecycle.ts"
import * as ModelLookup from "./ModelLookup.ts"
import type { Control, LoadOverrides } from "./ModelRepository.ts"
import { ModelStore } from "./ModelStore.ts"
import { ModelVersion } from "./ModelVersion.ts"
import * as Retirement from "./Retirement.ts"

/** The models that a layer is loaded for. */
export type Models = readonly [DeclaredModel, ...ReadonlyArray<DeclaredModel>]

/** Options of replacing a model. */
export interface RetireOptions {
  /** Maximum time for a retired model to finish its accepted requests. Default 30 seconds. */
  readonly drain?: Duration.Input
}

/** Options of unloading a model. */
export interface UnloadOptions extends RetireOptions {
  /** Default: all that there are. */
  readonly version?: string | number
}

/** Reasons to reject a change; `E`, the layer's errors, come in addition. */
export type Refusal = AlreadyExists | InvalidRequest | Unavailable

/** How code loads models into the servers of a registry, and takes them out. */
export interface Loading {
  /**
   * Builds the layer in a separate scope, and serves these models; completes once they take requests. The caller
   * provides the layer's requirements. Fails with AlreadyExists if a model of this version exists. A failed build is
   * released.
   */
  readonly load: <const M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
  ) => Effect.Effect<void, E | Refusal, R>
  /**
   * Replaces all versions of these models, if any. They run until the new ones take requests, finish their accepted
   * requests, and then end. Callers that hold one of them reach the new one from now on. If the layer cannot be built,
   * they remain.
   */
  readonly replace: <const M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
    options?: RetireOptions,
  ) => Effect.Effect<void, E | Refusal, R>
  /**
   * Loads a model of the server's model repository, which must be under explicit control, as over the wire. Completes
   * once the model takes requests; after a failure, the earlier version remains.
   */
  readonly loadStored: (name: string, overrides?: Partial<LoadOverrides>) => Effect.Effect<void, InferenceError>
  /**
   * Unloads a model; completes once it has finished its accepted requests and ended. Code that the model waits for,
   * such as a model that it calls, does not wait for its end. Callers that hold the model receive ModelNotReady until a
   * model of its name is loaded. Also unloads models of a repository under explicit control; other models of a
   * repository remain.
   */
  readonly unload: (name: string, options?: UnloadOptions) => Effect.Effect<void, InferenceError>
}

const defaultDrain = "30 seconds"

export class CodeModels implements Loading {
  /** Shared with the repositories of the servers. */
  readonly lock = new KeyedLock()
  /** Those of all servers. */
  readonly models: ModelLookup.RegisteredModels
  readonly #parentScope: Scope.Scope
  /** Loaded models while no server is attached. */
  readonly #base = new ModelStore()
  readonly #servers = new Map<ModelStore, () => Control | undefined>()
  #scope: Scope.Closeable
  #lifecycle: Lifecycle

  /** Loaded models live at most as long as `parentScope`. */
  constructor(parentScope: Scope.Scope) {
    this.#parentScope = parentScope
    this.#scope = Scope.forkUnsafe(parentScope)
    this.#lifecycle = new Lifecycle(this.#scope, this.lock)
    const stores = () => (this.#servers.size > 0 ? [...this.#servers.keys()] : [this.#base])
    const lookup = ModelLookup.make({
      versions: (name) => this.#serving(name).flatMap(({ running }) => running ?? []),
      absent: (name) => [...new Set(stores().flatMap((store) => store.absent(name)))],
    })
    this.models = {
      ...lookup,
      get models() {
        return [...new Set(stores().flatMap(({ models }) => models))]
      },
    }
  }

  readonly load: Loading["load"] = (models, layer) => this.#install(models, layer, undefined)

  readonly replace: Loading["replace"] = (models, layer, { drain = defaultDrain } = {}) =>
    this.#install(models, layer, drain)

  readonly loadStored: Loading["loadStored"] = (name, { files = new Map(), ...overrides } = {}) =>
    Effect.suspend(() => {
      const load = this.#control()?.load(name, { ...overrides, files })
      const message = "no model repository with explicit model control is configured"
      return load ?? Effect.fail(new Unavailable({ message }))
    })

  readonly unload: Loading["unload"] = (name, options = {}) =>
    Effect.gen({ self: this }, function* () {
      if (this.#isStored(name) && options.version === undefined) {
        const unload = this.#control()?.unload(name, false)
        if (unload !== undefined) return yield* unload
      }
      const removed = yield* this.#lifecycle.change([name], Effect.uninterruptible(this.#remove(name, options)))
      const caller = yield* Caller
      if (!Retirement.wouldDeadlock(removed.versions, caller?.cycles)) yield* Fiber.await(removed.over)
    })

  /**
   * Also serves the loaded models in this store until the scope closes. Closing the last store unloads all models.
   * `control` of the server's repository is evaluated on demand. Fails if a loaded model has the name and version of
   * one in the store.
   */
  include(
    store: ModelStore,
    control: () => Control | undefined = () => undefined,
  ): Effect.Effect<void, AlreadyExists, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.suspend(() => {
        for (const { description } of this.#base.models) {
          const { name, version } = description
          if (Result.isSuccess(store.get(name, version))) {
            return Effect.fail(
              new AlreadyExists({ message: `Model '${name}' version ${version} is given more than once.` }),
            )
          }
        }
        for (const name of this.#base.names()) {
          for (const version of this.#base.known(name)) store.add(version)
          if (this.#base.serving(name).length > 0) {
            store.serve(name, [...store.serving(name), ...this.#base.serving(name)])
          }
        }
        this.#servers.set(store, control)
        return Effect.void
      }),
      () =>
        Effect.andThen(
          Effect.suspend(() => (this.#servers.size === 1 ? this.#endAll() : Effect.void)),
          Effect.sync(() => void this.#servers.delete(store)),
        ),
    )
  }

  get #stores(): ReadonlyArray<ModelStore> {
    return [this.#base, ...this.#servers.keys()]
  }

  /** Those that requests reach on any server, the lowest version first. */
  #serving(name: string): ReadonlyArray<ModelVersion> {
    const stores = this.#servers.size > 0 ? [...this.#servers.keys()] : [this.#base]
    const [first, ...others] = stores.map((store) => store.serving(name))
    if (first !== undefined && others.length === 0) return first
    const all = new Set([...(first ?? []), ...others.flat()])
    return [...all].toSorted((a, b) => Number(a.version) - Number(b.version))
  }

  #serve(name: string, change: (versions: ReadonlyArray<ModelVersion>) => ReadonlyArray<ModelVersion>): void {
    for (const store of this.#stores) store.serve(name, change(store.serving(name)))
  }

  #control(): Control | undefined {
    for (const control of this.#servers.values()) {
      const found = control()
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Whether it is of a repository. */
  #isStored(name: string): boolean {
    return this.#serving(name).some(({ origin }) => origin === "repository")
  }

  /** Forgets failed loads of a name, all or of one version; whether there were any. */
  #forgetFailures(name: string, version?: string): boolean {
    let isKnown = false
    for (const store of this.#stores) {
      for (const known of store.known(name)) {
        if (known.origin !== "code" || known.state !== "failed" || (version ?? known.version) !== known.version)
          continue
        isKnown = true
        store.forget(known)
      }
    }
    return isKnown
  }

  /** `drain`: maximum time for the replaced models to finish; undefined if none is replaced. */
  #install<const M extends Models, E, R>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
    drain: Duration.Input | undefined,
  ): Effect.Effect<void, E | Refusal, R> {
    const lifecycle = this.#lifecycle
    const names = [...new Set(models.map(({ definition }) => definition.name))]
    const admit = Effect.suspend((): Effect.Effect<void, Refusal> => {
      const refusal = this.#refusal(models, drain !== undefined)
      return refusal === undefined ? Effect.void : Effect.fail(refusal)
    })
    const change = Effect.uninterruptibleMask((restore) =>
      Effect.gen({ self: this }, function* () {
        yield* admit
        const versions = models.map(
          ({ definition: { name, version } }) => new ModelVersion({ name, version, origin: "code" }),
        )
        for (const version of versions) for (const store of this.#stores) store.add(version)
        // The build shares no resources with the server, so all layers are built anew.
        const built = Effect.flatMap(Scope.Scope, (modelsScope) =>
          Layer.buildWithMemoMap(layer, Layer.makeMemoMapUnsafe(), modelsScope).pipe(
            Effect.tap(admit),
            // The load may be part of a request, whose deadline is not that of the model.
            Effect.provideService(Caller, undefined),
          ),
        )
        const { built: context, scope } = yield* lifecycle.load(versions, restore(built))
        for (const [index, version] of versions.entries()) {
          const model = models[index]
          if (model !== undefined) version.ready(Context.get(context, model).model, scope)
        }
        yield* this.#commit(names, versions, drain)
      }),
    )
    return lifecycle.change(names, change)
  }

  /** Serves new versions, and retires those that they replace. */
  #commit(
    names: ReadonlyArray<string>,
    versions: ReadonlyArray<ModelVersion>,
    drain: Duration.Input | undefined,
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      const replaced = drain === undefined ? [] : names.flatMap((name) => this.#serving(name))
      for (const name of names) {
        this.#forgetFailures(name)
        const fresh = versions.filter((version) => version.name === name)
        this.#serve(name, (others) => (drain === undefined ? [...others, ...fresh] : fresh))
      }
      return Effect.asVoid(this.#lifecycle.retire(replaced, this.models.get, drain ?? 0))
    })
  }

  /** Why these models cannot be loaded now. */
  #refusal(models: Models, replaces: boolean): Refusal | undefined {
    for (const [index, { definition }] of models.entries()) {
      const { name, version } = definition
      const serving = this.#serving(name)
      if (this.#isStored(name)) return new InvalidRequest({ message: storedProblem(name) })
      const isTwice = models
        .slice(0, index)
        .some((other) => other.definition.name === name && other.definition.version === version)
      if (!isTwice && (replaces || !serving.some((other) => other.version === version))) continue
      return new AlreadyExists({ message: `model '${name}' version ${version} already exists` })
    }
    return undefined
  }

  #remove(name: string, { version, drain = defaultDrain }: UnloadOptions) {
    return Effect.gen({ self: this }, function* () {
      if (this.#isStored(name)) return yield* new InvalidRequest({ message: storedProblem(name) })
      const versionText = version === undefined ? undefined : String(version)
      const wasFailed = this.#forgetFailures(name, versionText)
      const found = this.models.get(name, versionText ?? "")
      if (Result.isFailure(found)) {
        if (!wasFailed) return yield* found.failure
        return { versions: [], over: yield* this.#lifecycle.retire([], this.models.get, 0) }
      }
      const versions = this.#serving(name).filter(
        ({ running }) => versionText === undefined || running === found.success,
      )
      this.#serve(name, (others) => others.filter((other) => !versions.includes(other)))
      return { versions, over: yield* this.#lifecycle.retire(versions, this.models.get, drain) }
    })
  }

  /** Ends all that is loaded. */
  #endAll(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const scope = this.#scope
      this.#scope = Scope.forkUnsafe(this.#parentScope)
      this.#lifecycle = new Lifecycle(this.#scope, this.lock)
      const loaded = new Set(this.#base.names().flatMap((name) => this.#base.known(name)))
      return Effect.ensuring(
        Scope.close(scope, Exit.void),
        Effect.sync(() => {
          for (const name of this.#base.names()) {
            this.#serve(name, (others) => others.filter((other) => !loaded.has(other)))
          }
          for (const version of loaded) for (const store of this.#stores) store.forget(version)
        }),
      )
    })
  }
}

const storedProblem = (name: string) => `model '${name}' belongs to the model repository, which loads and unloads it`
