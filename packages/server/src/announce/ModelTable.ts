/** The table of a server's models, loaded or not. StartText.ts prints it with everything else that a start prints. */
import type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { print, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import type { ModelsFound } from "../error/ServeError.ts"
import { table } from "./Table.ts"

export const modelTable = ({ index, models }: ModelsFound): string => {
  const heads = ["MODEL", "VERSION", "STATUS", "MAX BATCH", "INPUTS", "OUTPUTS"]
  return table(
    heads,
    index().map((entry) => row(entry, models)),
  )
}

/** Returns the running model of an entry, if there is one. */
export const runningModel = (entry: IndexEntry, models: ReadonlyArray<RunningModel>): RunningModel | undefined =>
  models.find(({ description: { name, version } }) => name === entry.name && version === entry.version)

/** Returns the cells of one model; a model that is not loaded has only a status. */
const row = (entry: IndexEntry, models: ReadonlyArray<RunningModel>): ReadonlyArray<string> => {
  const { name, version = "-", state } = entry
  const model = runningModel(entry, models)
  const status = [name, version, state ?? "not loaded"]
  if (model === undefined) return [...status, "", "", ""]
  const {
    description: { maxBatchSize, signature },
  } = model
  return [
    ...status,
    String(maxBatchSize),
    signature.inputs.map(tensor).join(", "),
    signature.outputs.map(tensor).join(", "),
  ]
}

/** Formats a tensor, with a question mark if it is optional. */
const tensor = ({ name, datatype, dims, optional }: TensorSpec): string =>
  `${name}${optional ? "?" : ""} ${print(datatype, dims)}`
