/**
 * Reads an .onnx file before ONNX Runtime does, which opens files by itself and waits for whatever they are: the model,
 * and the weight files that it names, must be regular files within their limits.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Data, Effect } from "effect"
import { totalmem } from "node:os"
import { dirname, join } from "node:path"
import * as Files from "./file/Files.ts"
import { maxModelBytes } from "./file/ModelSize.ts"
import * as OnnxFile from "./OnnxFile.ts"

export interface ModelSource {
  readonly signature: OnnxFile.FileSignature
  /** Paths of the files with weights, next to the model. */
  readonly weightFiles: ReadonlyArray<string>
}

/** A file that can be read, with other contents. */
export class NotOnnx extends Data.TaggedError("NotOnnx")<{ readonly message: string }> {}

export const read = Effect.fn("ModelSource.read")(function* (
  file: string,
): Effect.fn.Return<ModelSource, Files.FileProblem | NotOnnx> {
  const bytes = yield* Files.read(file, maxModelBytes)
  const { signature, externalFiles } = yield* Effect.try({
    try: () => OnnxFile.read(bytes),
    catch: (error) => new NotOnnx({ message: errorMessage(error) }),
  })
  return { signature, weightFiles: externalFiles.map((name) => join(dirname(file), name)) }
})

/** Fails with the reason unless ONNX Runtime may open these files now. Called before each start of a session. */
export const check = (file: string, weightFiles: ReadonlyArray<string>): Effect.Effect<void, string> => {
  const model = Effect.mapError(Files.check(file, maxModelBytes), reason)
  // Weights that do not fit in the memory cannot be loaded.
  const weights = Effect.forEach(
    weightFiles,
    (path) => Effect.mapError(Files.check(path, totalmem()), (problem) => `weight file ${path}: ${reason(problem)}`),
    { discard: true },
  )
  return Effect.andThen(model, weights)
}

/** Shortens the system's text for the commonest reason. */
export const reason = ({ code, message }: Files.FileProblem): string =>
  code === "ENOENT" ? "the file does not exist" : message
