/**
 * A repository, as the catalogue sees it: where the directories of models come from. LocalDirectory.ts is one on disk,
 * and mirror/Mirror.ts one in object storage.
 */
import type { Effect, Scope } from "effect"
import type { LoadFailure } from "./LoadFailure.ts"
import type { ModelDirectory } from "./ModelDirectory.ts"

/** Which parts of a model a load reads. */
export interface OpenOptions {
  /** Name of an alternative configuration, which is taken where the model has it. */
  readonly configName: string | undefined
  /** Returns the versions that will be loaded. `config`: the text of the model's configuration, if it has one. */
  readonly wanted: (config: string | undefined, available: ReadonlyArray<number>) => ReadonlyArray<number>
}

/** The directory of a model on disk. */
export interface OpenedModel {
  readonly directory: ModelDirectory
  /** Keeps the files in place while the scope is open. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
  /** Returns an error message with paths as callers may see them. */
  readonly shown: (message: string) => string
}

export interface RepositoryDirectory {
  /** Path or URL, for messages and as the namespace of its models. Without secrets. */
  readonly path: string
  /** Looks at a repository that is not on disk: what it has now is what the members below see. */
  readonly refresh: Effect.Effect<void, LoadFailure>
  /** Names of its models. */
  readonly names: Effect.Effect<ReadonlyArray<string>, LoadFailure>
  /** Changes with any file of a model. */
  readonly stamp: (name: string) => Effect.Effect<string>
  /** How far the download of a model is, in words; undefined if nothing is downloaded for it. */
  readonly progress: (name: string) => string | undefined
  /** Reads the directory of a model, which is there at least until the scope closes. */
  readonly open: (name: string, options: OpenOptions) => Effect.Effect<OpenedModel, LoadFailure, Scope.Scope>
}
