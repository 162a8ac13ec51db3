/**
 * One model of a repository over its life: which versions take requests, what becomes of those that come after them, and
 * what the index says of both. Changes are made one after the other, each to its end.
 *
 *   load:    plan ─► every new version loads ─► registry ─► those that they replace answer what they have, and unload
 *                 │  and every new instance of
 *                 │  versions that stay
 *                 └─ fails ────────────────────┴─► what was there stays
 *   unload:  out of the registry ─► what is there answers what it has, and unloads
 */
import { Duration, Effect, Exit, Result, Scope, Semaphore } from "effect"
import type { IndexEntry, ModelState } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { OpenRegistry } from "@nereid/core/internal/lifecycle/Registry"
import type { Retirement } from "@nereid/core/internal/lifecycle/Retirement"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as EnsembleConfig from "../config/EnsembleConfig.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as ModelPlan from "../plan/ModelPlan.ts"
import * as VersionLoader from "./VersionLoader.ts"
import type { StoredVersion } from "../plan/StoredVersion.ts"
import type { Others } from "../plan/Others.ts"

/** What a model is loaded from. */
export interface Source {
  /** Versions that there are, for the index, whatever the plan makes of them. */
  readonly versions: ReadonlyArray<number>
  readonly plan: Effect.Effect<ModelPlan.ModelPlan, LoadFailure>
  /** Its files stay where they are while the scope is open. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
}

export interface RepositoryModel {
  /** One entry for each version; one without a version where none has been loaded. */
  readonly index: () => ReadonlyArray<IndexEntry>
  /** Whether what was asked for is there; also where it is an earlier plan, because a later one failed. */
  readonly isReady: () => boolean
  /** Completes once all versions take requests. */
  readonly load: (source: Source) => Effect.Effect<void, LoadFailure>
  /** Completes once no version takes requests. */
  readonly unload: Effect.Effect<void>
  /** Names of the models that it is made of; none of one that is not loaded, or is no ensemble. */
  readonly needs: () => ReadonlyArray<string>
  /**
   * Looks whether the models that it is made of are still there, and fit, after other models have changed: where they do not, it is
   * as if it had been unloaded, until they do.
   */
  readonly review: () => void
}

interface LoadedVersion extends ModelPlan.PlannedVersion, StoredVersion {
  readonly scope: Scope.Closeable
}

interface Loaded {
  readonly plan: ModelPlan.ModelPlan
  readonly versions: ReadonlyArray<LoadedVersion>
}

/** Of a version, whatever has been tried with it. */
interface Outcome {
  readonly planned: ModelPlan.PlannedVersion
  readonly result: Result.Result<unknown, LoadFailure>
}

interface Status {
  readonly state: ModelState
  readonly reason: string
}

const ready: Status = { state: "READY", reason: "" }

/** What the models of a repository share. */
export interface Surroundings {
  readonly registry: OpenRegistry
  readonly retirement: Retirement
  readonly others: Others
  /** What is loaded lives at most as long. */
  readonly scope: Scope.Scope
}

export const make = (name: string, { registry, retirement, others, scope }: Surroundings): RepositoryModel => {
  const turn = Semaphore.makeUnsafe(1)
  const statuses = new Map<number, Status>()
  /** Why nothing is there of a model of which there is no version, either. */
  let reason: string | undefined
  let isWanted = false
  let loaded: Loaded | undefined
  /** In the registry. */
  let served: ReadonlyArray<RunningModel> = []
  /** Whether what is loaded has been in the registry. */
  let hasServed = false

  /** Puts what takes requests into the registry, and says why not of what does not. Whether that has changed anything. */
  const show = (): boolean => {
    const shown: Array<RunningModel> = []
    for (const { version, running, problem } of loaded?.versions ?? []) {
      const reason = problem?.()
      if (reason === undefined) shown.push(running)
      statuses.set(version, reason === undefined ? ready : { state: "UNAVAILABLE", reason })
    }
    if (shown.length > 0) hasServed = true
    if (shown.length === served.length && shown.every((running, index) => running === served[index])) return false
    served = shown
    registry.replace(name, shown)
    return true
  }

  const loadVersion = Effect.fnUntraced(function* ({ hold }: Source, planned: ModelPlan.PlannedVersion) {
    const own = yield* Scope.fork(scope)
    const version = yield* hold.pipe(
      Effect.andThen(Effect.fromResult(planned.plan)),
      Effect.flatMap((plan) => VersionLoader.load(plan, others)),
      Scope.provide(own),
      Effect.raceFirst(patience(name, planned.version)),
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(own, exit) : Effect.void)),
    )
    retirement.moveIn([version.running], own)
    return { ...planned, ...version, scope: own } satisfies LoadedVersion
  })

  /** Nobody waits for it, and it has all the time that its requests take. */
  const retire = Effect.fnUntraced(function* ({ version, running }: LoadedVersion, state: ModelState) {
    const leaving: Status = { state, reason: "" }
    if (state === "UNLOADING") statuses.set(version, leaving)
    yield* retirement.retire([running], registry.get, Duration.infinity).pipe(
      // It may be there again meanwhile.
      Effect.andThen(Effect.sync(() => statuses.get(version) === leaving && statuses.set(version, unloaded))),
      Effect.forkIn(scope),
    )
  })

  const apply = Effect.fnUntraced(function* (source: Source, plan: ModelPlan.ModelPlan) {
    const before = loaded?.versions ?? []
    const reusable = loaded !== undefined && ModelPlan.isSameModel(loaded.plan, plan) ? before : []
    const kept = reusable.filter((version) => plan.versions.some((other) => ModelPlan.isSameVersion(version, other)))
    const added = plan.versions.filter(({ version }) => !kept.some((other) => other.version === version))
    const isServed = (version: number) => before.some((other) => other.version === version)
    for (const { version } of added) if (!isServed(version)) statuses.set(version, { state: "LOADING", reason: "" })
    const isRegrouped = loaded !== undefined && !ModelPlan.hasSameInstances(loaded.plan, plan)
    const regrouped = yield* Effect.forEach(
      isRegrouped ? kept : [],
      (planned) => Effect.map(Effect.result(planned.regroup(plan.config)), (result) => ({ planned, result })),
      { concurrency: "unbounded" },
    )
    const results = yield* Effect.forEach(
      added,
      (planned) => Effect.map(Effect.result(loadVersion(source, planned)), (result) => ({ planned, result })),
      { concurrency: "unbounded" },
    )
    const fresh = results.flatMap(({ result }) => (Result.isSuccess(result) ? [result.success] : []))
    const outcomes: ReadonlyArray<Outcome> = [...regrouped, ...results]
    const failures = outcomes.flatMap(({ planned: { version }, result }) =>
      Result.isFailure(result) ? [{ version, reason: result.failure.message }] : [],
    )
    failures.push(...problemsOf(fresh))
    for (const { version, reason } of failures) {
      if (!isServed(version)) statuses.set(version, { state: "UNAVAILABLE", reason })
    }
    const failure = unavailable(failures)
    if (failures.length > 0 && before.length > 0) {
      for (const version of fresh) yield* Scope.close(version.scope, Exit.void)
      return yield* failure
    }
    for (const { result } of regrouped) if (Result.isSuccess(result)) yield* result.success.commit
    const versions = [...kept, ...fresh]
    const gone = before.filter((version) => !versions.includes(version))
    loaded = { plan, versions }
    hasServed = false
    // Who looks at the registry is told of other instances, too.
    if (!show()) registry.replace(name, served)
    for (const version of gone) {
      const isReplaced = versions.some((other) => other.version === version.version)
      yield* retire(version, isReplaced ? "READY" : "UNLOADING")
    }
    if (failures.length > 0) return yield* failure
    for (const warning of plan.warnings) yield* Effect.logWarning(`Model '${name}': without effect here: ${warning}`)
  })

  const load = Effect.fnUntraced(function* (source: Source) {
    isWanted = true
    yield* source.hold
    const plan = yield* source.plan.pipe(
      Effect.tapError(({ message }) =>
        Effect.sync(() => {
          if (loaded !== undefined) return
          reason = message
          statuses.clear()
          for (const version of source.versions) statuses.set(version, { state: "UNAVAILABLE", reason: message })
        }),
      ),
    )
    // What could not be loaded is tried again.
    if (loaded !== undefined && isComplete(loaded) && ModelPlan.isSame(loaded.plan, plan)) {
      const problems = problemsOf(loaded.versions)
      return problems.length > 0 ? yield* unavailable(problems) : undefined
    }
    if (loaded === undefined) statuses.clear()
    yield* apply(source, plan)
  })

  return {
    index: () =>
      statuses.size === 0
        ? [{ name, ...(isWanted && reason !== undefined ? { state: "UNAVAILABLE" as const, reason } : {}) }]
        : [...statuses]
            .toSorted(([a], [b]) => a - b)
            .map(([version, status]) => ({ name, version: String(version), ...observed(status, version) })),
    isReady: () =>
      !isWanted ||
      (loaded !== undefined && isComplete(loaded) && (hasServed || served.length === loaded.versions.length)),
    needs: () => (loaded === undefined ? [] : EnsembleConfig.models(loaded.plan.config)),
    review: () => {
      if (loaded?.versions.some(({ problem }) => problem !== undefined)) show()
    },
    load: (source) => turn.withPermit(Effect.scoped(load(source))),
    unload: turn.withPermit(
      Effect.gen(function* () {
        isWanted = false
        reason = undefined
        const before = loaded?.versions ?? []
        loaded = undefined
        for (const [version, { state }] of statuses) if (state === "UNAVAILABLE") statuses.set(version, unloaded)
        // What else has this name there is not this repository's.
        if (served.length > 0) registry.replace(name, [])
        served = []
        for (const version of before) yield* retire(version, "UNLOADING")
      }),
    ),
  }

  /** A model that was loaded may yet be in trouble. */
  function observed(status: Status, version: number): Status {
    const running = loaded?.versions.find((other) => other.version === version)?.running
    if (status.state !== "READY" || running === undefined || running.isReady()) return status
    const who = running.platform === "ensemble" ? "one of its models takes no" : "none of its instances takes"
    return { state: "UNAVAILABLE", reason: `${who} requests now` }
  }
}

/** A load takes as long as it takes; whoever waits is told which it is. */
const patience = (name: string, version: number) =>
  Effect.logWarning(`Model '${name}' version ${version} has been loading for 30 seconds`).pipe(
    Effect.delay("30 seconds"),
    Effect.andThen(Effect.never),
  )

const isComplete = ({ plan, versions }: Loaded): boolean => versions.length === plan.versions.length

const unloaded: Status = { state: "UNAVAILABLE", reason: "unloaded" }

const unavailable = (versions: ReadonlyArray<{ readonly version: number; readonly reason: string }>) =>
  new LoadFailure({
    message: versions.map(({ version, reason }) => `version ${version} is at UNAVAILABLE state: ${reason};`).join(" "),
  })

/** What keeps versions from taking requests, though they are loaded. */
const problemsOf = (versions: ReadonlyArray<LoadedVersion>) =>
  versions.flatMap(({ version, problem }) => {
    const reason = problem?.()
    return reason === undefined ? [] : [{ version, reason }]
  })
