/** Where contracts are read from: an .onnx file, a model repository, or a server that runs. */
import { statSync } from "node:fs"
import { Effect } from "effect"
import { GenerateError } from "./GenerateError.ts"
import type { FoundContracts, SourceOptions } from "./FoundContract.ts"
import * as FileSource from "./FileSource.ts"
import * as RepositorySource from "./RepositorySource.ts"
import * as ServerSource from "./ServerSource.ts"

export const read = (source: string, options: SourceOptions): Effect.Effect<FoundContracts, GenerateError> => {
  // A single letter is a drive of Windows.
  if (/^[a-z]{2,}:\/\//i.test(source)) return ServerSource.read(source, options)
  const stats = statSync(source, { throwIfNoEntry: false })
  if (stats?.isDirectory() === true) return RepositorySource.read(source, options)
  if (stats?.isFile() === true) return FileSource.read(source, options)
  const message = `${source} is not a file, a directory, or a URL such as http://localhost:8000`
  return Effect.fail(new GenerateError({ message }))
}
