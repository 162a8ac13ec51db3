/**
 * The repository extension of the protocol, for both transports: the index of all models, from the repository and from
 * the start of the server, and the parameters of loads and unloads.
 */
import { Effect, Result } from "effect"
import { type InferenceError, InvalidRequest, Unavailable, Unsupported } from "@nereid/core/Errors"
import type { Control, LoadOverrides, OpenRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { IndexEntry, ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import type { SettingsDocument } from "@nereid/core/internal/codec/json/SettingsDocument"
import type { ModelRepositoryParameter } from "@nereid/protocol/grpc_service"

/** Request for the index of a repository. */
export interface IndexRequest {
  /** Name of the repository; empty for all. There is only one. */
  readonly repository: string
  readonly readyOnly: boolean
}

/** Models in code come first. */
export const index = (
  store: ModelStore,
  repository: OpenRepository,
  { repository: chosen, readyOnly }: IndexRequest,
): Effect.Effect<ReadonlyArray<IndexEntry>, InferenceError> => {
  if (chosen !== "") return Effect.fail(noChoice())
  return Effect.map(repository.refresh, () => {
    const entries = all(store, repository)
    return readyOnly ? entries.filter(({ state }) => state === "READY") : entries
  })
}

export const all = (store: ModelStore, repository: OpenRepository): ReadonlyArray<IndexEntry> => [
  ...store.indexOfCode(),
  ...repository.index(),
]

/** Returns the control that loads and unloads models, or the error if loading is not allowed. */
export const control = (repository: OpenRepository, chosen: string): Result.Result<Control, InferenceError> => {
  if (chosen !== "") return Result.fail(noChoice())
  if (repository.control !== undefined) return Result.succeed(repository.control)
  // Triton's message in both modes without control, polling or not.
  const message = "explicit model load / unload is not allowed if polling is enabled"
  return Result.fail(new Unavailable({ message }))
}

/** Whether the request is for ready models only. */
export const readyOnly = (document: SettingsDocument): Result.Result<boolean, InvalidRequest> => {
  const ready = document.get("ready")
  if (ready === undefined) return Result.succeed(false)
  if (ready.kind === "boolean") return Result.succeed(ready.value)
  return refused("Invalid value for 'ready': expected a boolean")
}

/** Parameters of either protocol: files are base64 in JSON, bytes in a message. */
export type RepositoryParameters = ReadonlyMap<string, string | boolean | Uint8Array | undefined>

/** Converts the parameters of a message. Values other than text, booleans and bytes are dropped. */
export const fromMessage = (parameters: { readonly [name: string]: ModelRepositoryParameter }): RepositoryParameters =>
  new Map(
    Object.entries(parameters).map(
      ([
        name,
        {
          parameterChoice: { value },
        },
      ]) => [name, typeof value === "bigint" ? undefined : value],
    ),
  )

const filePrefix = "file:"

export const loadOverrides = (parameters: RepositoryParameters): Result.Result<LoadOverrides, InvalidRequest> => {
  let config: string | undefined
  const files = new Map<string, Uint8Array>()
  for (const [name, value] of parameters) {
    if (name === "config") {
      if (typeof value !== "string") return wrongType(name, "string_param")
      config = value
    } else if (name.startsWith(filePrefix)) {
      const content = typeof value === "string" ? base64(value) : value
      if (!(content instanceof Uint8Array)) return wrongType(name, "bytes_param")
      files.set(name.slice(filePrefix.length), content)
    } else return refused(`unrecognized load parameter '${name}'.`)
  }
  return Result.succeed({ ...(config === undefined ? {} : { config }), files })
}

/** Whether the unload includes the models that an ensemble consists of. */
export const unloadDependents = (parameters: RepositoryParameters): Result.Result<boolean, InvalidRequest> => {
  const dependents = parameters.get("unload_dependents")
  if (dependents === undefined && !parameters.has("unload_dependents")) return Result.succeed(false)
  if (typeof dependents === "boolean") return Result.succeed(dependents)
  return refused("invalid value type for 'unload_dependents' parameter, expected bool_param.")
}

const refused = (message: string) => Result.fail(new InvalidRequest({ message }))

const wrongType = (name: string, expected: string) =>
  refused(`invalid value type for load parameter '${name}', expected ${expected}.`)

const base64 = (text: string): Uint8Array | undefined =>
  /^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text) ? Buffer.from(text, "base64") : undefined

const noChoice = () => new Unsupported({ message: "'repository_name' specification is not supported" })
