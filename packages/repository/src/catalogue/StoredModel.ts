/**
 * The lifecycle of one model of a repository: its active versions and their replacement. Callers hold the lock of the
 * model's name, so changes run in sequence, each to its end.
 *
 *   load:    plan ─► load new versions ─► serve them ─► drain and unload replaced versions
 *                 │  and new instances of
 *                 │  versions that stay
 *                 └─ failure ──────────┴─► keep the served versions
 *   unload:  stop serving ─► drain and unload all versions
 */
import { Duration, Effect, Result, type Scope } from "effect"
import type { Lifecycle } from "@nereid/core/internal/lifecycle/Lifecycle"
import type { IndexEntry, ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { type BuildScope, ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import * as EnsembleConfig from "../config/EnsembleConfig.ts"
import { LoadFailure, versionReason } from "../directory/LoadFailure.ts"
import type { ModelId } from "../directory/ModelId.ts"
import * as ModelPlan from "../plan/ModelPlan.ts"
import type { OtherModels } from "../plan/OtherModels.ts"
import type { StoredVersion } from "../plan/StoredVersion.ts"
import * as VersionLoader from "./VersionLoader.ts"

/** Source that a model is loaded from. */
export interface ModelSource {
  /** Versions in the directory, for the index, independent of the plan. */
  readonly versions: ReadonlyArray<number>
  readonly plan: Effect.Effect<ModelPlan.ModelPlan, LoadFailure>
  /** Keeps the files in place while the scope is open. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
  /** Returns an error message as callers may see it. */
  readonly shown: (message: string) => string
}

/** A version that is loaded. */
interface LoadedVersion extends ModelPlan.PlannedVersion, StoredVersion {
  readonly record: ModelVersion
}

/** A version that has been built and is not ready yet. */
interface BuiltVersion extends LoadedVersion {
  readonly scope: BuildScope
}

interface LoadedModel {
  readonly plan: ModelPlan.ModelPlan
  readonly versions: ReadonlyArray<LoadedVersion>
}

/** A version that cannot take requests, and why. */
interface VersionFailure {
  readonly version: number
  readonly reason: string
}

export interface StoredModelOptions {
  readonly store: ModelStore
  readonly lifecycle: Lifecycle
  readonly otherModels: OtherModels
  /** Serves the versions that can be built although others cannot. */
  readonly isPartial: boolean
}

export class StoredModel {
  readonly identity: ModelId
  readonly #options: StoredModelOptions
  #isRequested = false
  #wasRequested = false
  /** Whether its directory or configuration could not be read at the last load. */
  #isUnreadable = false
  /** Error of the last load. */
  #loadError: string | undefined
  #loaded: LoadedModel | undefined
  /** Whether a loaded version has taken requests. */
  #hasServed = false

  constructor(identity: ModelId, options: StoredModelOptions) {
    this.identity = identity
    this.#options = options
  }

  get #id(): string {
    return this.identity.id
  }

  /** Whether it was loaded, or its load has failed, and it was not unloaded since. */
  get isRequested(): boolean {
    return this.#isRequested
  }

  /** Whether a load was requested at any time. */
  get wasRequested(): boolean {
    return this.#wasRequested
  }

  /** One entry for each version; one without a version where none has been loaded. */
  index(): ReadonlyArray<IndexEntry> {
    const entries = this.#options.store.indexOfRepository(this.#id)
    return entries.length > 0 ? entries : [{ name: this.identity.name }]
  }

  get isUnreadable(): boolean {
    return this.#isUnreadable
  }

  /** Error of the last load; undefined if it succeeded, or there was none. */
  get loadError(): string | undefined {
    return this.#loadError
  }

  /**
   * Whether the requested model is loaded, even if a later load failed. As in Triton, a model that could not be read
   * counts as not requested.
   */
  isReady(): boolean {
    const loaded = this.#loaded
    if (!this.#isRequested || (loaded === undefined && this.#isUnreadable)) return true
    if (loaded === undefined || !isComplete(loaded)) return false
    return this.#hasServed || this.#served.length === loaded.versions.length
  }

  /** Ids of the models that it consists of; empty unless it is a loaded ensemble. */
  needs(): ReadonlyArray<string> {
    const names = this.#loaded === undefined ? [] : EnsembleConfig.models(this.#loaded.plan.config)
    return names.map(this.#options.otherModels.idOf)
  }

  /**
   * Checks, after changes of other models, that its dependencies exist and fit. Until they do, it takes no requests.
   */
  review(): void {
    if (this.#loaded?.versions.some(({ problem }) => problem !== undefined)) this.#serveReady()
  }

  /** Completes once all versions take requests. */
  load(source: ModelSource): Effect.Effect<void, LoadFailure, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      this.#isRequested = true
      this.#wasRequested = true
      yield* source.hold
      const plan = yield* source.plan.pipe(
        Effect.mapError(
          ({ message, isUnreadable = false }) => new LoadFailure({ message: source.shown(message), isUnreadable }),
        ),
        Effect.tapError(({ message, isUnreadable }) =>
          Effect.sync(() => {
            this.#isUnreadable = isUnreadable === true
            this.#failAll(source.versions, message)
          }),
        ),
      )
      this.#isUnreadable = false
      const loaded = this.#loaded
      // A version that could not be loaded is tried again.
      if (loaded !== undefined && isComplete(loaded) && ModelPlan.isSame(loaded.plan, plan)) {
        const problems = problemsOf(loaded.versions)
        return problems.length > 0 ? yield* dependencyFailure(problems) : undefined
      }
      if (loaded === undefined) this.#forgetOutcomes()
      yield* this.#apply(source, plan)
    }).pipe(
      Effect.tapError(({ message }) => Effect.sync(() => (this.#loadError = message))),
      Effect.tap(() => Effect.sync(() => (this.#loadError = undefined))),
    )
  }

  /** Completes once no version takes requests. */
  readonly unload: Effect.Effect<void> = Effect.suspend(() => {
    const { store } = this.#options
    const before = this.#loaded?.versions ?? []
    this.#isRequested = false
    this.#loadError = undefined
    this.#loaded = undefined
    for (const record of store.known(this.#id)) {
      if (record.origin !== "repository" || record.state !== "failed" || record.running !== undefined) continue
      if (record.version === "") store.forget(record)
      else record.end()
    }
    // Another model that has this name is not of this repository.
    if (this.#served.length > 0) store.serve(this.#id, [])
    return this.#retire(before)
  })

  /** Removes it from the index. Called after `unload`, and not during a load. */
  forget(): void {
    const { store } = this.#options
    for (const record of store.known(this.#id)) if (record.origin === "repository") store.forget(record)
  }

  #apply(source: ModelSource, plan: ModelPlan.ModelPlan): Effect.Effect<void, LoadFailure, Scope.Scope> {
    const { store } = this.#options
    return Effect.gen({ self: this }, function* () {
      const loaded = this.#loaded
      const before = loaded?.versions ?? []
      const reusable = loaded !== undefined && ModelPlan.isSameModel(loaded.plan, plan) ? before : []
      const kept = reusable.filter((version) => plan.versions.some((other) => ModelPlan.isSameVersion(version, other)))
      const added = plan.versions.filter(({ version }) => !kept.some((other) => other.version === version))
      const isRegrouped = loaded !== undefined && !ModelPlan.hasSameInstances(loaded.plan, plan)
      const regrouped = yield* Effect.forEach(isRegrouped ? kept : [], (version) => regroup(version, plan), {
        concurrency: "unbounded",
      })
      const built = yield* this.#buildAll(source, added)
      const fresh = built.flatMap((one) => (Result.isSuccess(one) ? [one.success] : []))
      const broken = [...regrouped, ...built].flatMap(failureOf)
      const problems = problemsOf(fresh)
      const failures = [...broken, ...problems]
      const isFirst = before.length === 0
      if (isFirst ? broken.length > 0 && !this.#options.isPartial : failures.length > 0) {
        yield* Effect.forEach(fresh, (version) => this.#abandon(version, isFirst), { discard: true })
        return yield* broken.length > 0 ? unavailable(failures) : dependencyFailure(problems)
      }
      for (const one of regrouped) if (Result.isSuccess(one)) yield* one.success.commit
      for (const { record, running, configuration, scope } of fresh) {
        record.ready(running, scope, configuration)
      }
      const versions = [...kept, ...fresh]
      const replaced = before.filter((version) => !versions.includes(version))
      this.#loaded = { plan, versions }
      this.#hasServed = false
      // Listeners hear of other instances, too.
      if (!this.#serveReady()) store.serve(this.#id, this.#served)
      yield* this.#retire(replaced)
      if (failures.length > 0) return yield* broken.length > 0 ? unavailable(failures) : dependencyFailure(problems)
      for (const warning of plan.warnings) {
        yield* Effect.logWarning(`Model '${this.#id}': setting without effect: ${warning}`)
      }
    })
  }

  /** Builds versions side by side. An interruption ends those that are built already. */
  #buildAll(
    source: ModelSource,
    versions: ReadonlyArray<ModelPlan.PlannedVersion>,
  ): Effect.Effect<ReadonlyArray<Result.Result<BuiltVersion, VersionFailure>>> {
    const built: Array<BuiltVersion> = []
    const build = (planned: ModelPlan.PlannedVersion) =>
      Effect.map(this.#build(source, planned), (result) => {
        if (Result.isSuccess(result)) built.push(result.success)
        return result
      })
    return Effect.onInterrupt(Effect.forEach(versions, build, { concurrency: "unbounded" }), () =>
      Effect.forEach(built, (version) => this.#abandon(version), { discard: true }),
    )
  }

  #build(
    { hold, shown }: ModelSource,
    planned: ModelPlan.PlannedVersion,
  ): Effect.Effect<Result.Result<BuiltVersion, VersionFailure>> {
    const { store, lifecycle, otherModels } = this.#options
    const version = String(planned.version)
    return Effect.suspend(() => {
      const record = new ModelVersion({ ...this.identity, version, origin: "repository" })
      store.add(record)
      const build = hold.pipe(
        Effect.andThen(Effect.fromResult(planned.plan)),
        Effect.flatMap((plan) => VersionLoader.load(plan, otherModels)),
        Effect.mapError((failure) => new LoadFailure({ message: shown(versionReason(failure)) })),
        Effect.raceFirst(logSlowLoad(this.#id, planned.version)),
      )
      return lifecycle.load([record], build).pipe(
        Effect.onInterrupt(() => Effect.sync(() => store.forget(record))),
        Effect.map(({ built, scope }): BuiltVersion => ({ ...planned, ...built, record, scope })),
        Effect.mapError(({ message }): VersionFailure => ({ version: planned.version, reason: message })),
        Effect.result,
      )
    })
  }

  /** Ends a version that has been built in vain. `isShown`: the index lists it as unloaded. */
  #abandon({ record, scope }: BuiltVersion, isShown = false): Effect.Effect<void> {
    return Effect.andThen(
      scope.abandon,
      Effect.sync(() => {
        record.end()
        if (!isShown) this.#options.store.forget(record)
      }),
    )
  }

  /** Each by itself, in the background, with all the time that its requests take. */
  #retire(versions: ReadonlyArray<LoadedVersion>): Effect.Effect<void> {
    const { store, lifecycle } = this.#options
    const find = (_name: string, version: string) => store.getOf(this.#id, version)
    return Effect.forEach(versions, ({ record }) => lifecycle.retire([record], find, Duration.infinity), {
      discard: true,
    })
  }

  /**
   * Serves the versions that can take requests, and fails the others with their reasons. Returns whether anything
   * changed.
   */
  #serveReady(): boolean {
    const ready: Array<ModelVersion> = []
    for (const { record, problem } of this.#loaded?.versions ?? []) {
      const reason = problem?.()
      if (reason === undefined) {
        record.restore()
        ready.push(record)
      } else record.fail(reason)
    }
    ready.sort((a, b) => Number(a.version) - Number(b.version))
    if (ready.length > 0) this.#hasServed = true
    const served = this.#served
    if (ready.length === served.length && ready.every((record, index) => record === served[index])) return false
    this.#options.store.serve(this.#id, ready)
    return true
  }

  /** The versions that requests reach, the lowest first. */
  get #served(): ReadonlyArray<ModelVersion> {
    return this.#options.store.serving(this.#id).filter(({ origin }) => origin === "repository")
  }

  /** Marks all versions as failed because there is no plan. Loaded versions remain. */
  #failAll(versions: ReadonlyArray<number>, reason: string): void {
    if (this.#loaded !== undefined) return
    this.#forgetOutcomes()
    for (const version of versions.length === 0 ? [""] : versions.map(String)) {
      const record = new ModelVersion({ ...this.identity, version, origin: "repository" })
      this.#options.store.add(record)
      record.fail(reason)
    }
  }

  /** Clears the results of earlier loads. */
  #forgetOutcomes(): void {
    const { store } = this.#options
    for (const record of store.known(this.#id)) {
      const isOver = record.state === "gone" || (record.state === "failed" && record.running === undefined)
      if (record.origin === "repository" && isOver) store.forget(record)
    }
  }
}

/** Prepares the instances of the new plan. The checks of that plan apply, as to a version that is built. */
const regroup = (
  loaded: LoadedVersion,
  { versions }: ModelPlan.ModelPlan,
): Effect.Effect<Result.Result<{ readonly commit: Effect.Effect<void> }, VersionFailure>, never, Scope.Scope> => {
  const { version } = loaded
  const planned = versions.find((other) => ModelPlan.isSameVersion(loaded, other))
  if (planned === undefined) return Effect.die("A version that is kept has no plan. This is a bug.")
  return Effect.fromResult(planned.plan).pipe(
    Effect.flatMap(({ config }) => loaded.regroup(config)),
    Effect.mapError((failure): VersionFailure => ({ version, reason: versionReason(failure) })),
    Effect.result,
  )
}

/** Logs a load that takes long. Loads have no timeout. */
const logSlowLoad = (name: string, version: number) =>
  Effect.logWarning(`Model '${name}' version ${version} has been loading for 30 seconds`).pipe(
    Effect.delay("30 seconds"),
    Effect.andThen(Effect.never),
  )

const isComplete = ({ plan, versions }: LoadedModel): boolean => versions.length === plan.versions.length

const failureOf = (result: Result.Result<unknown, VersionFailure>): ReadonlyArray<VersionFailure> =>
  Result.isFailure(result) ? [result.failure] : []

const unavailable = (versions: ReadonlyArray<VersionFailure>) =>
  new LoadFailure({
    message: versions.map(({ version, reason }) => `version ${version} is at UNAVAILABLE state: ${reason};`).join(" "),
  })

/** A failure because of other models concerns the whole model. */
const dependencyFailure = (problems: ReadonlyArray<VersionFailure>) =>
  new LoadFailure({ message: [...new Set(problems.map(({ reason }) => reason))].join("; ") })

/** Returns the versions that are loaded but cannot take requests, with the reason. */
const problemsOf = (versions: ReadonlyArray<LoadedVersion>): ReadonlyArray<VersionFailure> =>
  versions.flatMap(({ version, problem }) => {
    const reason = problem?.()
    return reason === undefined ? [] : [{ version, reason }]
  })
