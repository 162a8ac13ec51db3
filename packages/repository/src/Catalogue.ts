/**
 * The models of some directories by their names: where each of them is, whether it may be loaded from there, and what has
 * changed since it was last looked at. When something is loaded is Repository.ts's business.
 */
import { Effect, Result, type Scope } from "effect"
import { join } from "node:path"
import { ExecutionFailed } from "@nereid/core/Errors"
import type { IndexEntry, LoadOverrides } from "@nereid/core/ModelRepository"
import type { OpenRegistry } from "@nereid/core/Registry"
import * as Gpus from "./Gpus.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import * as ModelDirectory from "./ModelDirectory.ts"
import * as ModelPlan from "./ModelPlan.ts"
import * as OverrideDirectory from "./OverrideDirectory.ts"
import * as RepositoryModel from "./RepositoryModel.ts"

export interface CatalogueOptions {
  readonly directories: ReadonlyArray<string>
  readonly configName?: string
  readonly autoComplete?: boolean
  readonly defaultMaxBatchSize?: number
}

export class Catalogue {
  readonly #options: CatalogueOptions
  readonly #registry: OpenRegistry
  readonly #scope: Scope.Scope
  /** Of models in code. */
  readonly #taken: ReadonlySet<string>
  readonly #gpus = Gpus.numbers()
  readonly #models = new Map<string, RepositoryModel.RepositoryModel>()
  /** Of the directory from which a model was last loaded, or was to be. */
  readonly #stamps = new Map<string, string>()

  /** Loaded models live at most as long as the scope. */
  constructor(options: CatalogueOptions, registry: OpenRegistry, scope: Scope.Scope) {
    this.#options = options
    this.#registry = registry
    this.#scope = scope
    this.#taken = new Set(registry.models.map(({ name }) => name))
  }

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
  get scan(): Effect.Effect<ReadonlyMap<string, ReadonlyArray<string>>, LoadFailure> {
    return Effect.try({ try: () => this.#look(), catch: (error) => new LoadFailure({ message: text(error) }) })
  }

  #look(): ReadonlyMap<string, ReadonlyArray<string>> {
    const found = new Map<string, Array<string>>()
    for (const directory of this.#options.directories) {
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

  load(name: string, overrides: LoadOverrides): Effect.Effect<void, LoadFailure | ExecutionFailed> {
    return Effect.gen({ self: this }, function* () {
      const found = (yield* this.scan).get(name) ?? []
      const hasFiles = overrides.files.size > 0
      if (found.length === 0 && !hasFiles) {
        const message = `failed to load '${name}', failed to poll from model repository`
        return yield* new ExecutionFailed({ message })
      }
      if (hasFiles && overrides.config === undefined) {
        return yield* new LoadFailure({ message: "override model directory requires the parameter 'config'" })
      }
      this.#stamps.set(name, yield* stampOf(found))
      const source = hasFiles
        ? OverrideDirectory.make(name, overrides.files, (path) => this.#source(name, [path], overrides.config, true))
        : this.#source(name, found, overrides.config, false)
      yield* this.#model(name).load(yield* source)
    }).pipe(Effect.scoped)
  }

  /** Of a model that is not there, nothing is left to be done. */
  unload(name: string): Effect.Effect<void> {
    return this.#models.get(name)?.unload ?? Effect.void
  }

  /** Unloads a model that has no directory any more. */
  forget(name: string): Effect.Effect<void> {
    return Effect.andThen(
      this.unload(name),
      Effect.sync(() => {
        this.#models.delete(name)
        this.#stamps.delete(name)
      }),
    )
  }

  #model(name: string): RepositoryModel.RepositoryModel {
    let model = this.#models.get(name)
    if (model === undefined) {
      model = RepositoryModel.make(name, this.#registry, this.#scope)
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

const stampOf = (paths: ReadonlyArray<string>) =>
  Effect.map(Effect.forEach(paths, ModelDirectory.stamp), (stamps) => stamps.join("\n"))
