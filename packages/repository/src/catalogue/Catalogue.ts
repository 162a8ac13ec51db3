/**
 * Catalogue of the models in the repository's directories: their paths, whether they may be loaded, and changes since
 * the last scan. Repository.ts decides when to load them.
 */
import { Clock, Duration, Effect, Result, type Scope } from "effect"
import { identity } from "effect/Function"
import { InvalidRequest, ModelNotFound, Unavailable } from "@nereid/core/Errors"
import { Lifecycle } from "@nereid/core/internal/lifecycle/Lifecycle"
import type { Control, LoadOverrides, RepositoryServer } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { IndexEntry, ModelStore, ResolveName } from "@nereid/core/internal/lifecycle/ModelStore"
import type { ModelVersionPolicy } from "@nereid/protocol/model_config"
import * as ConfigJson from "../config/ConfigJson.ts"
import * as ConfigText from "../config/ConfigText.ts"
import * as Gpus from "../config/Gpus.ts"
import * as VersionPolicy from "../config/VersionPolicy.ts"
import { type LoadFailure, refuse, unreadable } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as ModelId from "../directory/ModelId.ts"
import * as ModelName from "../directory/ModelName.ts"
import type { OverrideDirectory } from "../directory/OverrideDirectory.ts"
import type { OpenedModel, RepositoryDirectory } from "../directory/RepositoryDirectory.ts"
import * as ModelPlan from "../plan/ModelPlan.ts"
import type { OtherModels } from "../plan/OtherModels.ts"
import type { PythonOptions } from "../plan/PythonServer.ts"
import { type FoundDirectories, type LoadResult, type LoadedCatalogue, LoadTask } from "./LoadTask.ts"
import type { CompletePython } from "../plan/VersionPlan.ts"
import { type ModelSource, StoredModel } from "./StoredModel.ts"

export interface CatalogueOptions {
  readonly configName?: string
  readonly autoComplete?: boolean
  readonly defaultMaxBatchSize?: number
  readonly idleTimeout?: Duration.Input
  readonly partialModelLoad?: boolean
  readonly namespaces?: boolean
  readonly python?: PythonOptions
}

/** Ids of models, since the last load of each. */
interface Changes {
  /** Models whose directories are new, or have changed. */
  readonly changed: ReadonlyArray<string>
  /** Changed models that are in two or more repositories now. */
  readonly ambiguous: ReadonlyArray<string>
  /** Models whose directories are gone. */
  readonly gone: ReadonlyArray<string>
}

/** Milliseconds for which an index shows what repositories that are not on disk had. */
const maxIndexAge = 2_000

export class Catalogue implements LoadedCatalogue {
  readonly #options: CatalogueOptions
  readonly #directories: ReadonlyArray<RepositoryDirectory>
  readonly #store: ModelStore
  readonly #lifecycle: Lifecycle
  /** Names of models in code. */
  readonly #codeModels: ReadonlySet<string>
  readonly #gpus = Gpus.numbers()
  /** By id. */
  readonly #models = new Map<string, StoredModel>()
  /** By name; several only with namespaces. */
  readonly #named = new Map<string, Set<StoredModel>>()
  /** Models requested by name, and not only as part of an ensemble. */
  readonly #explicit = new Set<string>()
  /** Stamp of the directories from which a model was last loaded, or failed to load. */
  readonly #stamps = new Map<string, string>()
  /** Configurations of load requests, each for as long as the directories have this stamp. */
  readonly #overrides = new Map<string, { readonly config: string; readonly stamp: string | undefined }>()
  readonly #completePython: CompletePython
  /** Loads and unloads on request; undefined unless clients control the loads. */
  control: Control | undefined
  /** The directories of the last scan. */
  #found: FoundDirectories | undefined
  /** Time of the last refresh, in milliseconds since 1970. */
  #refreshedAt = -Infinity

  /** Loaded models live at most as long as the scope. */
  constructor(
    directories: ReadonlyArray<RepositoryDirectory>,
    options: CatalogueOptions,
    { store, lock }: RepositoryServer,
    scope: Scope.Scope,
  ) {
    this.#directories = directories
    this.#options = options
    this.#completePython = completePython(options.python ?? {})
    this.#store = store
    this.#lifecycle = new Lifecycle(scope, lock)
    this.#codeModels = new Set(store.models.map(({ description }) => description.name))
    if (options.namespaces === true) store.resolve = this.#resolve
  }

  /**
   * Returns the index, sorted by name. `isOfScan`: without models that the last scan has not found and that have no
   * state.
   */
  index(isOfScan = false): ReadonlyArray<IndexEntry> {
    const found = isOfScan ? this.#found : undefined
    const models = [...this.#models].toSorted(([a], [b]) => (a < b ? -1 : 1))
    // A model whose directory has gone is shown as long as there is a state to show.
    return models.flatMap(([id, model]) => {
      const entries = model.index().filter(({ state }) => found === undefined || found.has(id) || state !== undefined)
      const reason = this.#progressOf(id, model)
      if (reason === undefined) return entries
      // The version is not known yet.
      const loading = { name: model.identity.name, state: "LOADING", reason } as const
      return [...entries.filter(({ version = "" }) => version !== ""), loading]
    })
  }

  /** How far the download of a model is; undefined without one. */
  #progressOf(id: string, { identity }: StoredModel): string | undefined {
    for (const directory of this.#found?.get(id) ?? []) {
      const progress = directory.progress(identity.name)
      if (progress !== undefined) return progress
    }
    return undefined
  }

  isReady(): boolean {
    return [...this.#models.values()].every((model) => model.isReady())
  }

  /** Looks at the repositories that are not on disk. A scan sees what they had at the last look. */
  get refresh(): Effect.Effect<void, LoadFailure> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.#refreshedAt = now
      return Effect.forEach(this.#directories, ({ refresh }) => refresh, { concurrency: "unbounded", discard: true })
    })
  }

  /** Scans for an index. Indexes may be requested often, so that a look at the repositories serves all for some time. */
  get scanForIndex(): Effect.Effect<FoundDirectories, LoadFailure> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      now - this.#refreshedAt < maxIndexAge ? this.scan : Effect.andThen(this.refresh, this.scan),
    )
  }

  /** The repositories of each model that there is now. */
  get scan(): Effect.Effect<FoundDirectories, LoadFailure> {
    return Effect.gen({ self: this }, function* () {
      const found = new Map<string, Array<RepositoryDirectory>>()
      for (const directory of this.#directories) {
        for (const name of yield* directory.names) {
          const identity = ModelId.make(name, this.#options.namespaces === true ? directory.path : undefined)
          const directories = found.get(identity.id) ?? []
          found.set(identity.id, directories)
          directories.push(directory)
          this.#add(identity)
        }
      }
      this.#found = found
      return found
    })
  }

  get changes(): Effect.Effect<Changes, LoadFailure> {
    return Effect.gen({ self: this }, function* () {
      yield* this.refresh
      const found = yield* this.scan
      const changed: Array<string> = []
      for (const [id, directories] of found) {
        if ((yield* this.#stampOf(id, directories)) !== this.#stamps.get(id)) changed.push(id)
      }
      return {
        changed,
        ambiguous: changed.filter((name) => (found.get(name)?.length ?? 0) > 1),
        gone: [...this.#models.keys()].filter((name) => !found.has(name)),
      }
    })
  }

  /**
   * Loads these models with the overrides, after the models that they consist of, unless those are loaded. Returns the
   * result of each model.
   */
  load(
    names: ReadonlyArray<string>,
    overrides: LoadOverrides,
  ): Effect.Effect<ReadonlyMap<string, LoadResult>, LoadFailure | Unavailable> {
    return Effect.gen({ self: this }, function* () {
      yield* this.scan
      const task = new LoadTask(this, this.#lifecycle, names, overrides)
      yield* task.run
      return task.results
    })
  }

  /** Ids of the models that have this name in the directories now; the name itself if none has it. */
  ids(name: string): Effect.Effect<ReadonlyArray<string>, LoadFailure> {
    if (this.#options.namespaces !== true) return Effect.succeed([name])
    return Effect.map(this.scan, (found) => {
      const models = [...(this.#named.get(name) ?? [])].map(({ identity }) => identity.id)
      const present = models.filter((id) => found.has(id))
      if (present.length > 0) return present
      return models.length > 0 ? models : [name]
    })
  }

  /** Unloads a model; harmless if it is not loaded. `dependents`: also unloads models that were loaded only for it. */
  unload(name: string, dependents: boolean): Effect.Effect<void, Unavailable> {
    return this.#unload(name, dependents, () => true)
  }

  /**
   * After any change of what requests reach: an ensemble may have lost a model that it is made of, or have it again.
   */
  readonly review = (): void => {
    for (const model of this.#models.values()) model.review()
  }

  /** Unloads and forgets a model whose directory is gone. */
  forget(name: string): Effect.Effect<void, Unavailable> {
    return Effect.andThen(
      this.unload(name, false),
      Effect.sync(() => {
        const model = this.#models.get(name)
        model?.forget()
        this.#models.delete(name)
        if (model !== undefined) this.#named.get(model.identity.name)?.delete(model)
        this.#stamps.delete(name)
      }),
    )
  }

  model(id: string): StoredModel {
    return this.#models.get(id) ?? this.#add(ModelId.make(id, undefined))
  }

  idOf(id: string, name: string): string {
    return this.#neighbour(this.model(id).identity.namespace, name)
  }

  needs(name: string): ReadonlyArray<string> {
    return this.#models.get(name)?.needs() ?? []
  }

  isServed(name: string): boolean {
    return this.#store.versionsOf(name).length > 0
  }

  markRequested(name: string): void {
    this.#explicit.add(name)
  }

  source(
    id: string,
    found: ReadonlyArray<RepositoryDirectory> | OverrideDirectory,
    config: string | undefined,
  ): Effect.Effect<ModelSource, never, Scope.Scope> {
    const { configName, autoComplete = true, defaultMaxBatchSize = 4, idleTimeout = 0 } = this.#options
    const [directory, other] = "path" in found ? [] : found
    const { name } = this.model(id).identity
    const problem = this.#codeModels.has(name)
      ? "a model of this name is also defined in code"
      : other === undefined
        ? ModelName.problem(name)
        : "model appears in two or more repositories"
    const wanted = (text: string | undefined, available: ReadonlyArray<number>) =>
      VersionPolicy.chosen(versionPolicyOf(config, text), available)
    const read: Effect.Effect<OpenedModel, LoadFailure, Scope.Scope> =
      "path" in found
        ? Effect.map(ModelDirectory.read(name, found.path, configName), (read) => ({ ...found, directory: read }))
        : (directory?.open(name, { configName, wanted }) ?? Effect.die("A model has no repository. This is a bug."))
    const opening = Effect.mapError(Effect.andThen(refuse(problem), read), unreadable)
    return Effect.map(Effect.result(opening), (opened) => {
      const plan = Effect.flatMap(Effect.fromResult(opened), ({ directory }) =>
        ModelPlan.make(
          directory,
          {
            autoComplete,
            defaultMaxBatchSize,
            idleSeconds: Duration.toSeconds(idleTimeout),
            gpus: this.#gpus,
            completePython: this.#completePython,
            backendDirectory: this.#options.python?.backendDirectory,
          },
          config === undefined ? undefined : { config, isForeign: "path" in found },
        ),
      )
      if (Result.isFailure(opened)) return { versions: [], plan, hold: Effect.void, shown: identity }
      const { directory, hold, shown } = opened.success
      return { versions: [...directory.versions.keys()], plan, hold, shown }
    })
  }

  stamp(id: string, directories: ReadonlyArray<RepositoryDirectory>): Effect.Effect<string | undefined> {
    return Effect.map(this.#stampOf(id, directories), (stamp) => {
      this.#stamps.set(id, stamp)
      const override = this.#overrides.get(id)
      return override?.stamp === stamp ? override.config : undefined
    })
  }

  keepOverride(name: string, config: string | undefined): void {
    if (config === undefined) this.#overrides.delete(name)
    else this.#overrides.set(name, { config, stamp: this.#stamps.get(name) })
  }

  #stampOf(id: string, directories: ReadonlyArray<RepositoryDirectory>): Effect.Effect<string> {
    const { name } = this.model(id).identity
    return Effect.map(
      Effect.forEach(directories, (directory) => directory.stamp(name)),
      (stamps) => stamps.join("\n"),
    )
  }

  #add(identity: ModelId.ModelId): StoredModel {
    const { id, name, namespace } = identity
    const known = this.#models.get(id)
    if (known !== undefined) return known
    const idOf = (other: string) => this.#neighbour(namespace, other)
    const store = this.#store
    const otherModels: OtherModels = {
      versions: (other) => store.versionsOf(idOf(other)),
      isKnown: (other) => this.#models.get(idOf(other))?.isUnreadable === false || this.#codeModels.has(other),
      loadError: (other) => this.#models.get(idOf(other))?.loadError,
      idOf,
      calls: store,
      python: {
        options: this.#options.python ?? {},
        models: store,
        control: () => (this.control === undefined ? Result.fail(notExplicit()) : Result.succeed(this.control)),
      },
    }
    const isPartial = this.#options.partialModelLoad ?? false
    const model = new StoredModel(identity, { store, lifecycle: this.#lifecycle, otherModels, isPartial })
    this.#models.set(id, model)
    const sameName = this.#named.get(name) ?? new Set<StoredModel>()
    this.#named.set(name, sameName.add(model))
    return model
  }

  /** Id of the model that an ensemble of this namespace means: that of its own repository, or the only other one. */
  #neighbour(namespace: string | undefined, name: string): string {
    if (this.#options.namespaces !== true) return name
    const own = ModelId.make(name, namespace).id
    if (namespace !== undefined && this.#models.has(own)) return own
    const [only, ...others] = this.#named.get(name) ?? []
    return only === undefined || others.length > 0 ? name : only.identity.id
  }

  /** The model that callers reach by this name, with namespaces. The messages are Triton's. */
  readonly #resolve: ResolveName = (name) => {
    if (this.#codeModels.has(name)) return Result.succeed(name)
    const models = [...(this.#named.get(name) ?? [])]
    const [first, ...others] = models.filter(({ isRequested }) => isRequested)
    if (first !== undefined && others.length === 0) return Result.succeed(first.identity.id)
    if (first !== undefined) {
      const count = `There are ${others.length + 1} identifiers of model '${name}' in global map`
      const message = `${count}, model namespace must be provided to resolve ambiguity.`
      return Result.fail(new InvalidRequest({ message }))
    }
    return models.some(({ wasRequested }) => wasRequested)
      ? Result.fail(new ModelNotFound({ message: `Identifier of model '${name}' is not found in global map` }))
      : Result.fail(new InvalidRequest({ message: `Request for unknown model: '${name}' is not found` }))
  }

  /** `canUnload` is called once the lock of the model is held. */
  #unload(name: string, dependents: boolean, canUnload: () => boolean): Effect.Effect<void, Unavailable> {
    const unload = Effect.gen({ self: this }, function* () {
      const model = this.#models.get(name)
      if (model === undefined || !canUnload()) return []
      const needs = model.needs()
      this.#explicit.delete(name)
      this.#overrides.delete(name)
      yield* model.unload
      return dependents ? needs : []
    })
    return Effect.flatMap(this.#lifecycle.change([name], unload), (needs) =>
      Effect.forEach(needs, (need) => this.#unload(need, true, () => !this.#isNeeded(need)), { discard: true }),
    )
  }

  #isNeeded(name: string): boolean {
    return this.#explicit.has(name) || [...this.#models.values()].some((model) => model.needs().includes(name))
  }
}

/** Triton's message in both modes without control, polling or not. */
const notExplicit = () =>
  new Unavailable({ message: "explicit model load / unload is not allowed if polling is enabled" })

/** The version policy of a configuration: of a load request, or else the text in the directory. */
const versionPolicyOf = (config: string | undefined, text: string | undefined): ModelVersionPolicy | undefined => {
  if (config !== undefined) {
    return Result.getOrUndefined(Result.try({ try: () => ConfigJson.parse(config), catch: () => "wrong" }))
      ?.versionPolicy
  }
  return text === undefined ? undefined : Result.getOrUndefined(ConfigText.parse(text))?.versionPolicy
}

/** The completion of models in Python, whose code is imported with the first of them. */
const completePython = (options: PythonOptions): CompletePython => {
  let made: Promise<CompletePython> | undefined
  const make = async () => (await import("../python/CompletedConfig.ts")).make(options)
  return (files, path, config) =>
    Effect.flatMap(
      Effect.promise(() => (made ??= make())),
      (complete) => complete(files, path, config),
    )
}
