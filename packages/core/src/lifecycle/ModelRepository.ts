/**
 * A source of models that come and go while a server runs, as the server sees it: it puts models into the registry and
 * takes them out, by itself or when told to. Where they come from, and how they are loaded, is the repository's own
 * business; without one, the models of a server are those it was started with.
 */
import { Context, Data, Effect, type Scope } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { OpenRegistry } from "./OpenRegistry.ts"

export type ModelState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING"

/** A version of a model, or a model of which no version has ever been loaded. */
export interface IndexEntry {
  readonly name: string
  readonly version?: string
  readonly state?: ModelState
  /** Why it is in that state; empty where there is nothing to say. */
  readonly reason?: string
}

/** What a caller that loads a model wants of it that its directory does not say. */
export interface LoadOverrides {
  /** A configuration as JSON, in place of the one in the directory. */
  readonly config?: string
  /** Contents of files by their paths below the model's directory, in place of all that is in it. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** A repository that cannot be opened, or with models that must be there and cannot be loaded. */
export class RepositoryError extends Data.TaggedError("RepositoryError")<{ readonly message: string }> {}

/** What loads and unloads models on demand. */
export interface Control {
  /** Completes once the model takes requests; a failure leaves what was there before. */
  readonly load: (name: string, overrides: LoadOverrides) => Effect.Effect<void, InferenceError>
  /** Completes once the model takes no more requests. `dependents`: with all models that it is made of. */
  readonly unload: (name: string, dependents: boolean) => Effect.Effect<void, InferenceError>
}

export interface OpenRepository {
  /** Loads what is to be there from the start. Once, ahead of all but `index` and `isReady`. */
  readonly begin: Effect.Effect<void, RepositoryError, Scope.Scope>
  /** Every model there is, loaded or not. */
  readonly index: () => ReadonlyArray<IndexEntry>
  /** Whether every model that is to be there is. */
  readonly isReady: () => boolean
  /** Undefined where the repository alone decides which models there are. */
  readonly control: Control | undefined
}

/** No models but those that the server was started with. */
export const none: OpenRepository = {
  begin: Effect.void,
  index: () => [],
  isReady: () => true,
  control: undefined,
}

/** Unloads what there is at the end of the scope. */
export type Open = (registry: OpenRegistry) => Effect.Effect<OpenRepository, RepositoryError, Scope.Scope>

/** The repository of the servers that are built with it. Default: none. */
export const ModelRepository = Context.Reference<Open>("@nereid/core/internal/lifecycle/ModelRepository", {
  defaultValue: () => () => Effect.succeed(none),
})
