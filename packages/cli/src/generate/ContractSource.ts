/** Where contracts are read from: an .onnx file, a model repository, or a server that runs. */
import { statSync } from "node:fs"
import { Effect } from "effect"
import type { ContractEntry } from "@nereid/core/ContractFile"
import { GenerateError } from "./GenerateError.ts"
import * as FileSource from "./FileSource.ts"
import * as RepositorySource from "./RepositorySource.ts"
import * as ServerSource from "./ServerSource.ts"

export interface SourceOptions extends ServerSource.ConnectionOptions {
  /** Empty: all there are; of an .onnx file what it is called. */
  readonly models: ReadonlyArray<string>
  readonly version: number | undefined
  /** Where the source does not say. */
  readonly maxBatchSize: number | undefined
  readonly configName: string | undefined
}

/** A contract as its source tells it, and with what it does not tell. */
export interface FoundContract {
  readonly told: ContractEntry["contract"]
  readonly entry: ContractEntry
}

export interface Found {
  readonly contracts: ReadonlyArray<FoundContract>
  /** Whether these are all there are; and not the model of a file, or those that were asked for. */
  readonly isComplete: boolean
  /** What a reader of the contracts should know of how they came to be. */
  readonly notes: ReadonlyArray<string>
}

export const read = (source: string, options: SourceOptions): Effect.Effect<Found, GenerateError> => {
  if (/^[a-z]+:\/\//i.test(source)) return ServerSource.read(source, options)
  const stats = statSync(source, { throwIfNoEntry: false })
  if (stats?.isDirectory() === true) return RepositorySource.read(source, options)
  if (stats?.isFile() === true) return FileSource.read(source, options)
  const message = `there is no file or directory ${source}, and it is no URL, such as http://localhost:8000`
  return Effect.fail(new GenerateError({ message }))
}
