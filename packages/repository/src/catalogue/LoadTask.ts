/**
 * One load of several models. A model is loaded under the lock of its name. An ensemble is loaded under the locks of
 * its name and of all models that it consists of, so that none of them changes during the load:
 *
 *   each name ─► lock it ─► prepare ─┬─ not an ensemble ─► load
 *                                    └─ ensemble ─► leave for the second step
 *   ensembles ─► lock all ─► prepare, with their models ─┬─ more names needed ─► repeat with these
 *                                                        └─ load, dependencies first
 */
import { Effect, References, Result, type Scope } from "effect"
import { ExecutionFailed, type Unavailable } from "@nereid/core/Errors"
import type { Lifecycle } from "@nereid/core/internal/lifecycle/Lifecycle"
import type { LoadOverrides } from "@nereid/core/internal/lifecycle/ModelRepository"
import * as EnsembleConfig from "../config/EnsembleConfig.ts"
import { failure, type LoadFailure, unreadable } from "../directory/LoadFailure.ts"
import * as OverrideDirectory from "../directory/OverrideDirectory.ts"
import type { RepositoryDirectory } from "../directory/RepositoryDirectory.ts"
import * as LoadOrder from "./LoadOrder.ts"
import type { ModelSource, StoredModel } from "./StoredModel.ts"

/** The result of loading a model. */
export type LoadResult = Result.Result<void, LoadFailure | ExecutionFailed | Unavailable>

/** A model that is about to be loaded. */
interface PreparedModel {
  readonly source: ModelSource
  /** Ids of the models that it consists of. */
  readonly needs: ReadonlyArray<string>
  /** To run once it is loaded. */
  readonly loaded: Effect.Effect<void>
}

/** The repositories of each model, by its id. */
export type FoundDirectories = ReadonlyMap<string, ReadonlyArray<RepositoryDirectory>>

/** Part of the catalogue that a load uses. */
export interface LoadedCatalogue {
  /** The repositories of each model that there is now. */
  readonly scan: Effect.Effect<FoundDirectories, LoadFailure>
  readonly model: (name: string) => StoredModel
  /** Id of the model that has this name in the configuration of the model with this id. */
  readonly idOf: (id: string, name: string) => string
  /** Ids of the models that a loaded model consists of. */
  readonly needs: (name: string) => ReadonlyArray<string>
  /** Whether a version of the model takes requests. */
  readonly isServed: (name: string) => boolean
  /** Records that the model was requested by its name. */
  readonly markRequested: (name: string) => void
  /**
   * Returns the source of a model, from its repositories, or from the files of a client. `config`: of a load request.
   */
  readonly source: (
    name: string,
    found: ReadonlyArray<RepositoryDirectory> | OverrideDirectory.OverrideDirectory,
    config: string | undefined,
  ) => Effect.Effect<ModelSource, never, Scope.Scope>
  /**
   * Remembers its directories as they are now, and returns the configuration of an earlier load request that still
   * applies to them.
   */
  readonly stamp: (name: string, found: ReadonlyArray<RepositoryDirectory>) => Effect.Effect<string | undefined>
  /**
   * Records that the model is loaded: with the configuration of a request, which later plain loads keep until the
   * directory changes, or without one.
   */
  readonly keepOverride: (name: string, config: string | undefined) => void
}

/** Models that are prepared, or loaded, at the same time. */
const concurrency = 4

const noOverrides: LoadOverrides = { files: new Map() }

export class LoadTask {
  /** Results by id, for each requested model and its dependencies. */
  readonly results: Map<string, LoadResult>
  readonly #catalogue: LoadedCatalogue
  readonly #lifecycle: Lifecycle
  readonly #names: ReadonlyArray<string>
  readonly #overrides: LoadOverrides
  /** Ensembles among the requested models. */
  readonly #ensembles = new Set<string>()
  /** Models whose directories have been read: what is wrong with them is logged once. */
  readonly #read = new Set<string>()

  constructor(
    catalogue: LoadedCatalogue,
    lifecycle: Lifecycle,
    names: ReadonlyArray<string>,
    overrides: LoadOverrides,
  ) {
    this.#catalogue = catalogue
    this.#lifecycle = lifecycle
    this.#names = names
    this.#overrides = overrides
    this.results = new Map(names.map((name) => [name, Result.void]))
  }

  get run(): Effect.Effect<void, LoadFailure | Unavailable> {
    const each = Effect.forEach(this.#names, (name) => this.#loadSingle(name), { concurrency, discard: true })
    const together = Effect.suspend(() =>
      this.#ensembles.size === 0
        ? Effect.void
        : this.#lifecycle.changeAll(this.#ensembles, (heldNames) => Effect.scoped(this.#loadEnsembles(heldNames))),
    )
    return Effect.andThen(each, together)
  }

  #loadSingle(name: string): Effect.Effect<void> {
    const load = Effect.gen({ self: this }, function* () {
      const found = yield* this.#catalogue.scan
      this.#catalogue.markRequested(name)
      const { source, needs, loaded } = yield* this.#prepare(name, found.get(name) ?? [], this.#overrides)
      if (needs.length === 0) return yield* Effect.andThen(this.#catalogue.model(name).load(source), loaded)
      this.#read.add(name)
      this.#ensembles.add(name)
    })
    return Effect.map(Effect.result(this.#lifecycle.change([name], Effect.scoped(load))), (loaded) => {
      if (Result.isFailure(loaded)) this.results.set(name, loaded)
    })
  }

  /** Loads the ensembles after their dependencies, or returns further names to lock first. */
  #loadEnsembles(
    heldNames: ReadonlySet<string>,
  ): Effect.Effect<ReadonlySet<string> | undefined, LoadFailure, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const found = yield* this.#catalogue.scan
      const prepared = new Map<string, PreparedModel>()
      const failed = new Map<string, LoadResult>()
      const needsOf = (name: string) => prepared.get(name)?.needs ?? this.#catalogue.needs(name)
      for (let next = [...this.#ensembles]; next.length > 0;) {
        const results = yield* Effect.forEach(next, (name) => this.#prepareQuietly(name, found), { concurrency })
        for (const [index, name] of next.entries()) {
          const one = results[index]
          if (one === undefined) continue
          if (Result.isSuccess(one)) prepared.set(name, one.success)
          else failed.set(name, Result.fail(one.failure))
        }
        // Before reading model files, which may be large.
        const missing = LoadOrder.reached(prepared.keys(), needsOf).difference(heldNames)
        if (missing.size > 0) return missing
        const needed = new Set([...prepared.values()].flatMap(({ needs }) => needs))
        // A requested model that failed in the first step is not retried.
        const isNew = (name: string) => !prepared.has(name) && !failed.has(name) && !hasFailed(this.results.get(name))
        next = [...needed].filter((name) => isNew(name) && found.has(name) && !this.#catalogue.isServed(name))
      }
      for (const name of this.#ensembles) this.#catalogue.markRequested(name)
      for (const [name, failure] of failed) this.results.set(name, failure)
      yield* this.#loadInOrder(prepared)
      return undefined
    })
  }

  #loadInOrder(prepared: ReadonlyMap<string, PreparedModel>): Effect.Effect<void, never, Scope.Scope> {
    const order = LoadOrder.make(new Map([...prepared].map(([name, { needs }]) => [name, needs])), (name) =>
      this.#catalogue.needs(name),
    )
    const load = (name: string): Effect.Effect<void, never, Scope.Scope> => {
      const one = prepared.get(name)
      if (one === undefined) return Effect.void
      const cycle = order.cycles.get(name)
      const plan = cycle === undefined ? one.source.plan : Effect.fail(failure(cycle))
      const loading = Effect.andThen(this.#catalogue.model(name).load({ ...one.source, plan }), one.loaded)
      // Code of another model of the ensemble may load this one as it begins.
      return Effect.map(Effect.result(this.#lifecycle.change([name], loading)), (loaded) => {
        this.results.set(name, loaded)
      })
    }
    return Effect.forEach(order.stages, (names) => Effect.forEach(names, load, { concurrency, discard: true }), {
      discard: true,
    })
  }

  /** Logs nothing where the directory has been read before. */
  #prepareQuietly(name: string, found: FoundDirectories) {
    const prepare = this.#prepare(
      name,
      found.get(name) ?? [],
      this.#ensembles.has(name) ? this.#overrides : noOverrides,
    )
    const isRead = this.#read.has(name)
    this.#read.add(name)
    return Effect.result(isRead ? Effect.provideService(prepare, References.MinimumLogLevel, "None") : prepare)
  }

  /** Reads everything to load once, before the first load. */
  #prepare(
    name: string,
    found: ReadonlyArray<RepositoryDirectory>,
    overrides: LoadOverrides,
  ): Effect.Effect<PreparedModel, LoadFailure | ExecutionFailed, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const hasFiles = overrides.files.size > 0
      if (found.length === 0 && !hasFiles) {
        const message = `failed to load '${name}', failed to poll from model repository`
        return yield* new ExecutionFailed({ message })
      }
      if (hasFiles && overrides.config === undefined) {
        return yield* unreadable(failure("override model directory requires the parameter 'config'"))
      }
      const kept = yield* this.#catalogue.stamp(name, found)
      const override = hasFiles
        ? yield* Effect.mapError(OverrideDirectory.make(name, overrides.files), unreadable)
        : undefined
      const config = overrides.config ?? kept
      const source = yield* this.#catalogue.source(name, override ?? found, config)
      const plan = yield* Effect.result(source.plan)
      const loaded = Effect.sync(() => this.#catalogue.keepOverride(name, hasFiles ? undefined : config))
      return {
        source: { ...source, plan: Effect.fromResult(plan) },
        needs: Result.isSuccess(plan)
          ? EnsembleConfig.models(plan.success.config).map((need) => this.#catalogue.idOf(name, need))
          : [],
        loaded,
      }
    })
  }
}

const hasFailed = (loaded: LoadResult | undefined): boolean => loaded !== undefined && Result.isFailure(loaded)
