/**
 * A model repository, as its server sees it: a source of models that loads and unloads them, by itself or on request.
 * The repository determines where models come from and how they are loaded.
 */
import { Context, Data, Effect, type Scope } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { KeyedLock } from "./KeyedLock.ts"
import type { IndexEntry, ModelStore } from "./ModelStore.ts"

/** Settings of a load request that override the model's directory. */
export interface LoadOverrides {
  /** A configuration as JSON, in place of the one in the directory. */
  readonly config?: string
  /** Contents of files by their paths below the model's directory, in place of all that is in it. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/** A repository that cannot be opened, or with models that must be there and cannot be loaded. */
export class RepositoryError extends Data.TaggedError("RepositoryError")<{ readonly message: string }> {}

/** Loads and unloads models on demand. */
export interface Control {
  /** Completes once the model takes requests; after a failure, the earlier version remains. */
  readonly load: (name: string, overrides: LoadOverrides) => Effect.Effect<void, InferenceError>
  /** Completes once the model takes no more requests. `dependents`: with all models that it is made of. */
  readonly unload: (name: string, dependents: boolean) => Effect.Effect<void, InferenceError>
}

export interface OpenRepository {
  /** Loads the initial models. Called once, before all members except `refresh`, `index` and `isReady`. */
  readonly begin: Effect.Effect<void, RepositoryError, Scope.Scope>
  /** Looks for models that have come or gone since the last load. Called before an index for a client. */
  readonly refresh: Effect.Effect<void, InferenceError>
  /** Every known model, loaded or not. */
  readonly index: () => ReadonlyArray<IndexEntry>
  /** False if the repository could not be opened at all. */
  readonly isLive: () => boolean
  /** Whether every model that is to be there is. */
  readonly isReady: () => boolean
  /** Where changes come from: nowhere, requests, or its directories. */
  readonly mode: "none" | "explicit" | "poll"
  /** Undefined if the repository alone determines its models. */
  readonly control: Control | undefined
}

/** No models but those that the server was started with. */
export const noRepository: OpenRepository = {
  begin: Effect.void,
  refresh: Effect.void,
  index: () => [],
  isLive: () => true,
  isReady: () => true,
  mode: "none",
  control: undefined,
}

/** The server that a repository is opened for. */
export interface RepositoryServer {
  /** Where its models are served, and their states shown. */
  readonly store: ModelStore
  /** Shared with all other changes of the server's models. */
  readonly lock: KeyedLock
}

/** Unloads what there is at the end of the scope. */
export type Open = (server: RepositoryServer) => Effect.Effect<OpenRepository, RepositoryError, Scope.Scope>

/** The repository of the servers that are built with it. Default: none. */
export const ModelRepository = Context.Reference<Open>("@nereid/core/internal/lifecycle/ModelRepository", {
  defaultValue: () => () => Effect.succeed(noRepository),
})
