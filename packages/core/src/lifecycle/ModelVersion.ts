/**
 * One load of a version of a model, from the request to its end: the state machine of ModelState.ts with the data of
 * each state. Reloading a version makes another ModelVersion. ModelStore.ts decides which versions requests reach.
 */
import { Effect, Exit, Scope } from "effect"
import type { ModelConfig } from "@nereid/protocol/model_config"
import type { RunningModel } from "../running/RunningModel.ts"
import { mayFollow, type ModelState } from "./ModelState.ts"

/** Source that controls a model: code, or a repository. */
export type Origin = "code" | "repository"

export interface ModelVersionOptions {
  readonly name: string
  /** A positive integer, in digits; empty for a model of which no version is known. */
  readonly version: string
  readonly origin: Origin
  /** The repository that the name is unique in; undefined if it is unique in the server. */
  readonly namespace?: string | undefined
}

/** The scope of a build. It closes when the last of the versions that came with it has ended. */
export class BuildScope {
  readonly #scope: Scope.Closeable
  #users = 0

  constructor(scope: Scope.Closeable) {
    this.#scope = scope
  }

  enter(): void {
    this.#users += 1
  }

  /** Closes it where no version has entered it. */
  readonly abandon: Effect.Effect<void> = Effect.suspend(() =>
    this.#users === 0 ? Scope.close(this.#scope, Exit.void) : Effect.void,
  )

  readonly leave: Effect.Effect<void> = Effect.suspend(() => {
    this.#users -= 1
    return this.#users === 0 ? Scope.close(this.#scope, Exit.void) : Effect.void
  })
}

export class ModelVersion {
  readonly name: string
  readonly version: string
  readonly origin: Origin
  readonly namespace: string | undefined
  /** Identifies the model among all models of its server. */
  readonly id: string
  #configuration: (() => ModelConfig) | undefined
  #isLoaded = false
  #state: ModelState = "wanted"
  #reason = ""
  #running: RunningModel | undefined
  #build: BuildScope | undefined
  readonly #watchers = new Set<(version: ModelVersion) => void>()

  constructor({ name, version, origin, namespace }: ModelVersionOptions) {
    this.name = name
    this.version = version
    this.origin = origin
    this.namespace = namespace
    this.id = namespace === undefined ? name : `${namespace}::${name}`
  }

  /** A version that is ready already, as the models that a server starts with. */
  static ready(running: RunningModel, origin: Origin = "code"): ModelVersion {
    const { name, version } = running.description
    const ready = new ModelVersion({ name, version, origin })
    ready.begin()
    ready.ready(running)
    return ready
  }

  get state(): ModelState {
    return this.#state
  }

  /** Why it has failed; empty in any other state. */
  get reason(): string {
    return this.#reason
  }

  /** The configuration that it was loaded with; undefined for a model in code, whose declaration has it. */
  get configuration(): (() => ModelConfig) | undefined {
    return this.#configuration
  }

  /** The model that requests reach; undefined before it is loaded and after it is removed. */
  get running(): RunningModel | undefined {
    return this.#running
  }

  /** Its load begins; `placeholder` refuses the requests that reach it meanwhile. */
  begin(placeholder?: RunningModel): void {
    this.#move("loading")
    this.#running = placeholder
  }

  /** It is loaded. `build` ends with it, unless it has brought other versions as well. */
  ready(running: RunningModel, build?: BuildScope, configuration?: () => ModelConfig): void {
    if (this.#state !== "loading") throw this.#wrongMove("ready")
    this.#isLoaded = true
    this.#configuration = configuration
    this.#running = running
    this.#build = build
    build?.enter()
    this.#move("ready")
  }

  /** Marks the version as failed, or replaces the reason if it has failed before. */
  fail(reason: string): void {
    if (this.#state === "failed") this.#reason = reason
    else this.#move("failed", reason)
  }

  /** Returns a failed version that was loaded to "ready". Has no effect in other states. */
  restore(): void {
    if (this.#state !== "failed") return
    if (!this.#isLoaded) throw this.#wrongMove("ready")
    this.#move("ready")
  }

  /** It receives no further requests. */
  drain(): void {
    this.#move("draining")
  }

  /** Releases its instances, and also the shared resources of its build if it is the last version that uses them. */
  readonly release: Effect.Effect<void> = Effect.suspend(() => {
    const build = this.#build
    const release = this.#running?.life.release ?? Effect.void
    return Effect.andThen(release, build?.leave ?? Effect.void)
  })

  /** Nothing of it is left, or ever was. */
  end(): void {
    this.#move("gone")
    this.#running = undefined
    this.#build = undefined
  }

  /** Calls the watcher after every change of its state, until the returned function is called. */
  watch(watcher: (version: ModelVersion) => void): () => void {
    this.#watchers.add(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  #move(to: ModelState, reason = ""): void {
    if (!mayFollow(this.#state, to)) throw this.#wrongMove(to)
    this.#state = to
    this.#reason = reason
    for (const watcher of this.#watchers) watcher(this)
  }

  #wrongMove(to: ModelState): Error {
    return new Error(
      `Model '${this.name}' version ${this.version} is ${this.#state} and cannot be ${to}. This is a bug.`,
    )
  }
}
