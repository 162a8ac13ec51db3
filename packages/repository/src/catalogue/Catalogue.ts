/**
 * The models of some directories by their names: where each of them is, whether it may be loaded from there, and what has
 * changed since it was last looked at. When something is loaded is Repository.ts's business.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, References, Result, type Scope } from "effect"
import { join, resolve } from "node:path"
import { ExecutionFailed, type Unavailable } from "@nereid/core/Errors"
import type { IndexEntry, LoadOverrides } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { OpenRegistry } from "@nereid/core/internal/lifecycle/Registry"
import * as Retirement from "@nereid/core/internal/lifecycle/Retirement"
import { within } from "@nereid/core/internal/lifecycle/ScopedChange"
import * as Turns from "@nereid/core/internal/lifecycle/KeyedLock"
import * as EnsembleConfig from "../config/EnsembleConfig.ts"
import * as LoadOrder from "./LoadOrder.ts"
import * as Gpus from "../config/Gpus.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as ModelPlan from "../plan/ModelPlan.ts"
import type { Others } from "../plan/Others.ts"
import * as OverrideDirectory from "../directory/OverrideDirectory.ts"
import * as RepositoryModel from "./RepositoryModel.ts"

export interface CatalogueOptions {
  readonly directories: ReadonlyArray<string>
  readonly configName?: string
  readonly autoComplete?: boolean
  readonly defaultMaxBatchSize?: number
}

/** What loading a model has come to. */
export type Loaded = Result.Result<void, LoadFailure | ExecutionFailed | Unavailable>

/** A model that is about to be loaded. */
interface Prepared {
  readonly source: RepositoryModel.Source
  /** Names of the models that it is made of. */
  readonly needs: ReadonlyArray<string>
}

type Found = ReadonlyMap<string, ReadonlyArray<string>>

/** What is loaded at once. */
interface Task {
  readonly overrides: LoadOverrides
  /** Of what was asked for. */
  readonly madeOfOthers: Set<string>
  readonly results: Map<string, Loaded>
  /** Those whose directories have been looked at, which log what is wrong with them once. */
  readonly told: Set<string>
}

/** Models that are looked at, or loaded, at the same time. */
const concurrency = 4

export class Catalogue {
  readonly #options: CatalogueOptions
  /** One that is given twice is one. */
  readonly #directories: ReadonlySet<string>
  readonly #surroundings: RepositoryModel.Surroundings
  /** Of models in code. */
  readonly #taken: ReadonlySet<string>
  readonly #gpus = Gpus.numbers()
  readonly #models = new Map<string, RepositoryModel.RepositoryModel>()
  /** Models that somebody asked for by their names, and not only for what is made of them. */
  readonly #explicit = new Set<string>()
  /**
   * A model is loaded, and unloaded, in its own turn; one that is made of others in the turn of all of them. What a model loads as
   * it begins waits for no turn, but for the model.
   */
  readonly #turns = Turns.make("pass")
  /** Of the directory from which a model was last loaded, or was to be. */
  readonly #stamps = new Map<string, string>()

  /** Loaded models live at most as long as the scope. */
  constructor(options: CatalogueOptions, registry: OpenRegistry, scope: Scope.Scope) {
    this.#options = options
    this.#directories = new Set(options.directories.map((directory) => resolve(directory)))
    this.#taken = new Set(registry.models.map(({ name }) => name))
    const isKnown = (name: string) => this.#models.has(name) || this.#taken.has(name)
    const others: Others = { versions: registry.versions, isKnown, calls: registry }
    this.#surroundings = { registry, retirement: Retirement.make(), others, scope }
  }

  /** Versions of a model that the index has. */
  readonly versions = (name: string): ReadonlyArray<string> =>
    this.#models
      .get(name)
      ?.index()
      .flatMap(({ version }) => version ?? []) ?? []

  /** In the order of the names. `isFresh`: of the directories as they are now, where they can be read. */
  index(isFresh = false): ReadonlyArray<IndexEntry> {
    const found = isFresh ? Result.getOrUndefined(Result.try(() => this.#look())) : undefined
    const models = [...this.#models].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const entries = models.flatMap(([, model]) => model.index())
    // Of what is not in any directory any more, only what was loaded once is yet to be told.
    return entries.filter(({ name, state }) => found === undefined || found.has(name) || state !== undefined)
  }

  isReady(): boolean {
    return [...this.#models.values()].every((model) => model.isReady())
  }

  /** The directories of each model that there is now. */
  get scan(): Effect.Effect<Found, LoadFailure> {
    return Effect.try({ try: () => this.#look(), catch: (error) => new LoadFailure({ message: errorMessage(error) }) })
  }

  #look(): Found {
    const found = new Map<string, Array<string>>()
    for (const directory of this.#directories) {
      for (const name of ModelDirectory.models(directory)) {
        const paths = found.get(name) ?? []
        found.set(name, paths)
        paths.push(join(directory, name))
        this.#model(name)
      }
    }
    return found
  }

  /** Names of models whose directories are other than when they were loaded, and of those that have none any more. */
  get changes(): Effect.Effect<
    { readonly changed: ReadonlyArray<string>; readonly gone: ReadonlyArray<string> },
    LoadFailure
  > {
    return Effect.gen({ self: this }, function* () {
      const found = yield* this.scan
      const changed: Array<string> = []
      for (const [name, paths] of found) {
        if ((yield* stampOf(paths)) !== this.#stamps.get(name)) changed.push(name)
      }
      return { changed, gone: [...this.#models.keys()].filter((name) => !found.has(name)) }
    })
  }

  /**
   * Loads these models, from what overrides their directories, and ahead of them the models that they are made of where these are
   * not loaded yet. What became of each of them.
   */
  load(
    names: ReadonlyArray<string>,
    overrides: LoadOverrides,
  ): Effect.Effect<ReadonlyMap<string, Loaded>, LoadFailure | Unavailable> {
    const load = Effect.gen({ self: this }, function* () {
      yield* this.scan
      const results = new Map<string, Loaded>(names.map((name) => [name, Result.void]))
      const task: Task = { overrides, madeOfOthers: new Set(), results, told: new Set() }
      yield* Effect.forEach(
        names,
        Effect.fnUntraced({ self: this }, function* (name: string) {
          const loaded = yield* Effect.result(this.#turns.take([name], Effect.scoped(this.#loadAlone(name, task))))
          if (Result.isFailure(loaded)) results.set(name, loaded)
        }),
        { concurrency, discard: true },
      )
      let held: ReadonlySet<string> = task.madeOfOthers
      while (held.size > 0) {
        const missing = yield* this.#turns.take([...held], Effect.scoped(this.#loadTogether(task, held)))
        if (missing.size === 0) break
        held = held.union(missing)
      }
      return results
    })
    return within(this.#surroundings.scope, load)
  }

  /** In its turn; one that is made of others is left to be loaded together with them. */
  #loadAlone(name: string, task: Task) {
    return Effect.gen({ self: this }, function* () {
      const found = yield* this.scan
      this.#explicit.add(name)
      const { source, needs } = yield* this.#prepare(name, found.get(name) ?? [], task.overrides)
      if (needs.length === 0) return yield* this.#model(name).load(source)
      task.told.add(name)
      task.madeOfOthers.add(name)
    })
  }

  /**
   * Loads those that are made of others, and these ahead of them, where it is the turn of all of them; else nothing: whose turn it has
   * to be besides.
   */
  #loadTogether(
    { overrides, madeOfOthers: names, results, told }: Task,
    held: ReadonlySet<string>,
  ): Effect.Effect<ReadonlySet<string>, LoadFailure, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const found = yield* this.scan
      const prepared = new Map<string, Prepared>()
      const failed = new Map<string, Loaded>()
      const needsOf = (name: string) => prepared.get(name)?.needs ?? this.#models.get(name)?.needs() ?? []
      for (let next = [...names]; next.length > 0;) {
        yield* Effect.forEach(
          next,
          Effect.fnUntraced({ self: this }, function* (name: string) {
            const given = names.has(name) ? overrides : noOverrides
            const prepare = this.#prepare(name, found.get(name) ?? [], given)
            const again = Effect.provideService(prepare, References.MinimumLogLevel, "None")
            const one = yield* Effect.result(told.has(name) ? again : prepare)
            told.add(name)
            if (Result.isSuccess(one)) prepared.set(name, one.success)
            else failed.set(name, Result.fail(one.failure))
          }),
          { concurrency, discard: true },
        )
        // Ahead of any look at what may be large.
        const missing = LoadOrder.reached(prepared.keys(), needsOf).difference(held)
        if (missing.size > 0) return missing
        const needed = new Set([...prepared.values()].flatMap(({ needs }) => needs))
        // One that has failed by itself has been tried.
        const isNew = (name: string) => !prepared.has(name) && !failed.has(name) && !hasFailed(results.get(name))
        next = [...needed].filter((name) => isNew(name) && this.#isToLoad(name, found))
      }
      for (const name of names) this.#explicit.add(name)
      for (const [name, failure] of failed) results.set(name, failure)
      const order = LoadOrder.make(
        new Map([...prepared].map(([name, { needs }]) => [name, needs])),
        (name) => this.#models.get(name)?.needs() ?? [],
      )
      for (const names of order.turns) {
        yield* Effect.forEach(
          names,
          Effect.fnUntraced({ self: this }, function* (name: string) {
            const source = prepared.get(name)?.source
            if (source === undefined) return
            const circle = order.circles.get(name)
            const plan = circle === undefined ? source.plan : Effect.fail(new LoadFailure({ message: circle }))
            results.set(name, yield* Effect.result(this.#model(name).load({ ...source, plan })))
          }),
          { concurrency, discard: true },
        )
      }
      return new Set<string>()
    })
  }

  /** Whether it is not there, and may come from a directory. */
  #isToLoad(name: string, found: Found): boolean {
    return found.has(name) && this.#surroundings.registry.versions(name).length === 0
  }

  /** Reads what is to be loaded: once, and before any of it is. */
  #prepare(
    name: string,
    found: ReadonlyArray<string>,
    overrides: LoadOverrides,
  ): Effect.Effect<Prepared, LoadFailure | ExecutionFailed, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const hasFiles = overrides.files.size > 0
      if (found.length === 0 && !hasFiles) {
        const message = `failed to load '${name}', failed to poll from model repository`
        return yield* new ExecutionFailed({ message })
      }
      if (hasFiles && overrides.config === undefined) {
        return yield* new LoadFailure({ message: "override model directory requires the parameter 'config'" })
      }
      this.#stamps.set(name, yield* stampOf(found))
      const override = hasFiles ? yield* OverrideDirectory.make(name, overrides.files) : undefined
      const paths = override === undefined ? found : [override.path]
      const read = yield* this.#source(name, paths, overrides.config, hasFiles)
      const source = override === undefined ? read : { ...read, hold: override.hold }
      const plan = yield* Effect.result(source.plan)
      return {
        source: { ...source, plan: Effect.fromResult(plan) },
        needs: Result.isSuccess(plan) ? EnsembleConfig.models(plan.success.config) : [],
      }
    })
  }

  /**
   * Of a model that is not there, nothing is left to be done. `dependents`: also the models that it is made of, where they were
   * loaded only for it.
   */
  unload(name: string, dependents: boolean): Effect.Effect<void, Unavailable> {
    return this.#unload(name, dependents, () => true)
  }

  /** `isToGo` is asked once it is its turn. */
  #unload(name: string, dependents: boolean, isToGo: () => boolean): Effect.Effect<void, Unavailable> {
    const unload = Effect.gen({ self: this }, function* () {
      const model = this.#models.get(name)
      if (model === undefined || !isToGo()) return []
      const needs = model.needs()
      this.#explicit.delete(name)
      yield* model.unload
      return dependents ? needs : []
    })
    return Effect.flatMap(this.#turns.take([name], unload), (needs) =>
      Effect.forEach(needs, (need) => this.#unload(need, true, () => !this.#isWanted(need)), { discard: true }),
    )
  }

  #isWanted(name: string): boolean {
    return this.#explicit.has(name) || [...this.#models.values()].some((model) => model.needs().includes(name))
  }

  /** After any change of the registry: what is made of other models may be there no longer, or again. */
  readonly review = (): void => {
    for (const model of this.#models.values()) model.review()
  }

  /** Unloads a model that has no directory any more. */
  forget(name: string): Effect.Effect<void, Unavailable> {
    return Effect.andThen(
      this.unload(name, false),
      Effect.sync(() => {
        this.#models.delete(name)
        this.#stamps.delete(name)
      }),
    )
  }

  #model(name: string): RepositoryModel.RepositoryModel {
    let model = this.#models.get(name)
    if (model === undefined) {
      model = RepositoryModel.make(name, this.#surroundings)
      this.#models.set(name, model)
    }
    return model
  }

  #source(
    name: string,
    paths: ReadonlyArray<string>,
    config: string | undefined,
    isForeign: boolean,
  ): Effect.Effect<RepositoryModel.Source> {
    const { configName, autoComplete = true, defaultMaxBatchSize = 4 } = this.#options
    const [path, other] = paths
    const problem = this.#taken.has(name)
      ? "a model of this name is in code, too"
      : other === undefined
        ? undefined
        : "model appears in two or more repositories"
    const refusal = problem === undefined ? Effect.void : Effect.fail(new LoadFailure({ message: problem }))
    const directory = Effect.andThen(refusal, ModelDirectory.read(name, path ?? "", configName))
    return Effect.map(Effect.result(directory), (read) => {
      const plan = Effect.flatMap(Effect.fromResult(read), (found) =>
        ModelPlan.make(
          found,
          { autoComplete, defaultMaxBatchSize, gpus: this.#gpus },
          config === undefined ? undefined : { config, isForeign },
        ),
      )
      return { versions: read._tag === "Success" ? [...read.success.versions.keys()] : [], plan, hold: Effect.void }
    })
  }
}

const hasFailed = (loaded: Loaded | undefined): boolean => loaded !== undefined && Result.isFailure(loaded)

const noOverrides: LoadOverrides = { files: new Map() }

/** Where a directory cannot be read, why: that is the failure of its model, which is no reason to stop looking at others. */
const stampOf = (paths: ReadonlyArray<string>): Effect.Effect<string> =>
  Effect.forEach(paths, ModelDirectory.stamp).pipe(
    Effect.map((stamps) => stamps.join("\n")),
    Effect.catch(({ message }) => Effect.succeed(message)),
  )
