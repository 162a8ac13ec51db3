/**
 * The versions of models of one server with their states: lookups, the index, readiness and metrics read it, and the
 * start table of `nereid serve` prints its index. The sources change the states (CodeModels.ts, a repository, a
 * starting server); the store only watches them. A family of variants is one version here.
 */
import { Result } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import * as NamedCalls from "../call/NamedCalls.ts"
import * as ModelLookup from "./ModelLookup.ts"
import type { ModelState } from "./ModelState.ts"
import { ModelVersion, type Origin } from "./ModelVersion.ts"

export type IndexState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING"

/** A version of a model, or a model without any loaded version, as in the index of the protocol. */
export interface IndexEntry {
  readonly name: string
  readonly version?: string
  readonly state?: IndexState
  /** Reason for the state; empty or absent without one. */
  readonly reason?: string
}

/** From names to ids of models. Fails for names that none or several models have. */
export type ResolveName = (name: string) => Result.Result<string, InferenceError>

/** Failed loads of models in code that the index shows; the oldest are forgotten. */
const maxFailures = 100

export class ModelStore implements ModelLookup.RegisteredModels {
  /** All versions by the id of their model, in any state except forgotten. */
  readonly #known = new Map<string, Set<ModelVersion>>()
  /** Those that requests reach, the lowest version first, by the id of their model. */
  readonly #serving = new Map<string, ReadonlyArray<ModelVersion>>()
  readonly #running = new Map<string, ReadonlyArray<RunningModel>>()
  #models: ReadonlyArray<RunningModel> = []
  /** Versions of the running models that requests reach. */
  readonly #versions = new WeakMap<RunningModel, ModelVersion>()
  /** Returns the id of the model that callers reach by this name. Default: a name is the id of its model. */
  resolve: ResolveName = Result.succeed
  readonly #listeners = new Set<() => void>()
  readonly #unwatch = new Map<ModelVersion, () => void>()
  readonly get: ModelLookup.RegisteredModels["get"]
  readonly infer: ModelLookup.RegisteredModels["infer"]
  readonly inferBatch: ModelLookup.RegisteredModels["inferBatch"]
  readonly stream: ModelLookup.RegisteredModels["stream"]
  readonly streamBatch: ModelLookup.RegisteredModels["streamBatch"]
  readonly withParameters: ModelLookup.RegisteredModels["withParameters"]
  readonly isReady: ModelLookup.RegisteredModels["isReady"]

  /** @throws TypeError if two of them have the same name and version */
  constructor(versions: ReadonlyArray<ModelVersion> = []) {
    this.get = (name, version) => Result.flatMap(this.resolve(name), (id) => this.getOf(id, version))
    const calls = NamedCalls.make(this.get)
    this.infer = calls.infer
    this.inferBatch = calls.inferBatch
    this.stream = calls.stream
    this.streamBatch = calls.streamBatch
    this.withParameters = calls.withParameters
    this.isReady = calls.isReady
    for (const version of versions) {
      const others = this.serving(version.id)
      if (others.some((other) => isSame(other, version))) {
        throw new TypeError(`Model '${version.name}' version ${version.version} is given more than once.`)
      }
      this.serve(version.id, [...others, version])
    }
  }

  /**
   * Models that are ready.
   * @throws TypeError if two of them have the same name and version
   */
  static of(models: ReadonlyArray<RunningModel>): ModelStore {
    return new ModelStore(models.map((model) => ModelVersion.ready(model)))
  }

  get models(): ReadonlyArray<RunningModel> {
    return this.#models
  }

  readonly versions = (name: string): ReadonlyArray<RunningModel> =>
    Result.match(this.resolve(name), { onSuccess: this.versionsOf, onFailure: () => noModels })

  /** All versions of the model of this id that requests reach, the lowest first. */
  readonly versionsOf = (id: string): ReadonlyArray<RunningModel> => this.#running.get(id) ?? noModels

  /** Looks a version up by the id of its model. */
  readonly getOf = (id: string, version: string): Result.Result<RunningModel, InferenceError> =>
    ModelLookup.find(this, id, version)

  readonly absent = (name: string): ReadonlyArray<string> =>
    Result.match(this.resolve(name), { onSuccess: this.absentOf, onFailure: () => [] })

  /** Versions of the model of this id that are known and take no requests. */
  readonly absentOf = (id: string): ReadonlyArray<string> => {
    const serving = this.serving(id)
    const isServed = (version: string) => serving.some((other) => other.version === version)
    return this.known(id).flatMap(({ version, state }) =>
      version === "" || state === "wanted" || isServed(version) ? [] : [version],
    )
  }

  /** The version that this model is, while requests reach it. */
  versionOf(model: RunningModel): ModelVersion | undefined {
    const version = this.#versions.get(model)
    return version !== undefined && version.running === model && this.serving(version.id).includes(version)
      ? version
      : undefined
  }

  /** Those that requests reach, the lowest version first. */
  serving(id: string): ReadonlyArray<ModelVersion> {
    return this.#serving.get(id) ?? noVersions
  }

  /** Ids of models of which any version is known. */
  names(): ReadonlyArray<string> {
    return [...this.#known.keys()]
  }

  /** All of a model, in the order they were added. */
  known(id: string): ReadonlyArray<ModelVersion> {
    return [...(this.#known.get(id) ?? noVersions)]
  }

  /**
   * From now on, requests to this model reach these versions and no others. Versions that they replace stay known until
   * they have ended. Each has its running model, or a placeholder for it.
   */
  serve(id: string, versions: ReadonlyArray<ModelVersion>): void {
    for (const version of versions) this.add(version)
    const ordered = versions.toSorted((a, b) => Number(a.version) - Number(b.version))
    if (ordered.length === 0) this.#serving.delete(id)
    else this.#serving.set(id, ordered)
    this.#refresh(id, versions)
    for (const listener of this.#listeners) listener()
  }

  /** Adds a version that requests do not reach (yet). The index shows it once its load begins. */
  add(version: ModelVersion): void {
    const known = this.#known.get(version.id) ?? new Set<ModelVersion>()
    if (known.has(version)) return
    for (const other of known) if (isSame(other, version) && isOver(other)) this.forget(other)
    known.add(version)
    this.#known.set(version.id, known)
    this.#unwatch.set(
      version,
      version.watch((changed) => this.#review(changed)),
    )
  }

  forget(version: ModelVersion): void {
    this.#unwatch.get(version)?.()
    this.#unwatch.delete(version)
    const known = this.#known.get(version.id)
    known?.delete(version)
    if (known?.size === 0) this.#known.delete(version.id)
  }

  /** Calls the listener after every change of what requests reach, until the returned function is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The models in code: those that requests reach come first, in the order they were registered. */
  indexOfCode(): ReadonlyArray<IndexEntry> {
    const running = this.#models.flatMap((model) => this.#versions.get(model)?.id ?? [])
    const ids = new Set([...running, ...this.#known.keys()])
    const served = [...ids].flatMap((id) => this.serving(id).filter(isInCode))
    const others = [...ids].flatMap((id) => this.#others(id, "code"))
    return [...served, ...others].flatMap((version) => entryOf(version) ?? [])
  }

  /** The versions of one model of a repository, the lowest first. */
  indexOfRepository(id: string): ReadonlyArray<IndexEntry> {
    const served = this.serving(id).filter(({ origin }) => origin === "repository")
    return [...served, ...this.#others(id, "repository")]
      .toSorted((a, b) => Number(a.version) - Number(b.version))
      .flatMap((version) => entryOf(version) ?? [])
  }

  /** For each version that requests do not reach, the load with the most informative state. */
  #others(id: string, origin: Origin): ReadonlyArray<ModelVersion> {
    const serving = this.serving(id)
    const best = new Map<string, ModelVersion>()
    for (const version of this.known(id)) {
      if (version.origin !== origin || version.state === "wanted") continue
      if (serving.some((other) => isSame(other, version))) continue
      const other = best.get(version.version)
      if (other === undefined || rank[version.state] >= rank[other.state]) best.set(version.version, version)
    }
    return [...best.values()]
  }

  #refresh(id: string, added: ReadonlyArray<ModelVersion>): void {
    for (const version of added) if (version.running !== undefined) this.#versions.set(version.running, version)
    const running = this.serving(id).flatMap((version) => version.running ?? [])
    if (running.length === 0) this.#running.delete(id)
    else this.#running.set(id, running)
    const isOfModel = (model: RunningModel) => this.#versions.get(model)?.id === id
    const first = this.#models.findIndex(isOfModel)
    const others = this.#models.filter((model) => !isOfModel(model))
    const models = added.flatMap((version) => version.running ?? [])
    this.#models = others.toSpliced(first < 0 ? others.length : first, 0, ...models)
  }

  /** Forgets a version that is over, if nothing shows it any more. */
  #review(version: ModelVersion): void {
    const { id, state } = version
    if (!isOver(version)) return
    // The index shows a failed reload only if no earlier load is ready, and an unloaded version only if no other load
    // is known.
    const isReplaced = this.known(id).some(
      (other) => other !== version && isSame(other, version) && (state === "gone" || other.state === "ready"),
    )
    const isUseless = version.origin === "code" ? state === "gone" : isReplaced
    if (isUseless) return this.forget(version)
    if (version.origin === "code") this.#forgetOldFailures()
  }

  #forgetOldFailures(): void {
    const failures = [...this.#known.values()].flatMap((known) =>
      [...known].filter((version) => isInCode(version) && version.state === "failed"),
    )
    for (const oldest of failures.slice(0, Math.max(0, failures.length - maxFailures))) this.forget(oldest)
  }
}

const noVersions: ReadonlyArray<ModelVersion> = []

const noModels: ReadonlyArray<RunningModel> = []

/** Of several loads of one version, the index shows the one of the highest rank. */
const rank: Readonly<Record<ModelState, number>> = {
  wanted: 0,
  gone: 1,
  failed: 1,
  draining: 2,
  loading: 3,
  ready: 4,
}

const isInCode = ({ origin }: ModelVersion): boolean => origin === "code"

const isSame = (one: ModelVersion, other: ModelVersion): boolean =>
  one.version === other.version && one.origin === other.origin

/** Whether the version is neither loaded nor loading. */
const isOver = ({ state, running }: ModelVersion): boolean =>
  state === "gone" || (state === "failed" && running === undefined)

/** Undefined for a version that the index does not show. */
const entryOf = ({ name, version, state, reason, running }: ModelVersion): IndexEntry | undefined => {
  const identity = version === "" ? { name } : { name, version }
  switch (state) {
    case "wanted":
      return undefined
    case "loading":
      return { ...identity, state: "LOADING", reason }
    case "ready":
      return running?.life.isReady() === false
        ? { ...identity, state: "UNAVAILABLE", reason: running.life.problem() }
        : { ...identity, state: "READY", reason }
    case "draining":
      return { ...identity, state: "UNLOADING", reason }
    case "gone":
      return { ...identity, state: "UNAVAILABLE", reason: "unloaded" }
    case "failed":
      return { ...identity, state: "UNAVAILABLE", reason }
  }
}
