/**
 * The repository as its extension of the protocol shows it, where there is none: the models are those that the server was
 * started with, and none is loaded or unloaded while it runs.
 */
import { Result } from "effect"
import { type InferenceError, InvalidRequest, Unavailable, Unsupported } from "@nereid/core/Errors"
import type { RunningModel } from "@nereid/core/RunningModel"
import type { SettingsDocument } from "@nereid/core/SettingsDocument"

/** One version of a model. */
export interface IndexEntry {
  readonly name: string
  readonly version: string
  readonly state: "READY" | "UNAVAILABLE"
  /** Why it is in that state; empty where there is nothing to say. */
  readonly reason: string
}

/** Which entries of which repository are wanted. */
export interface IndexRequest {
  /** Empty for all there are; there is no choice between them. */
  readonly repository: string
  readonly readyOnly: boolean
}

export const index = (
  models: ReadonlyArray<RunningModel>,
  { repository, readyOnly }: IndexRequest,
): Result.Result<ReadonlyArray<IndexEntry>, InferenceError> => {
  if (repository !== "") return Result.fail(noChoice())
  const entries = models.map(entry)
  return Result.succeed(readyOnly ? entries.filter(({ state }) => state === "READY") : entries)
}

/** To load or to unload a model: both are refused. */
export const control = (repository: string): Result.Result<never, InferenceError> =>
  Result.fail(
    repository === ""
      ? // Said in the protocol's mode without control, too (reference, A6).
        new Unavailable({ message: "explicit model load / unload is not allowed if polling is enabled" })
      : noChoice(),
  )

/** Whether only what is ready is asked for. */
export const readyOnly = (document: SettingsDocument): Result.Result<boolean, InvalidRequest> => {
  const ready = document.get("ready")
  if (ready === undefined) return Result.succeed(false)
  if (ready.kind === "boolean") return Result.succeed(ready.value)
  return Result.fail(new InvalidRequest({ message: "Invalid value for 'ready': expected a boolean" }))
}

const entry = (model: RunningModel): IndexEntry => {
  const { name, version } = model
  return model.isReady()
    ? { name, version, state: "READY", reason: "" }
    : { name, version, state: "UNAVAILABLE", reason: model.unavailable ?? "none of its instances takes requests now" }
}

const noChoice = () => new Unsupported({ message: "'repository_name' specification is not supported" })
