/** The contract of an .onnx file. */
import { readFile } from "node:fs/promises"
import { basename, dirname, extname, resolve } from "node:path"
import { Effect } from "effect"
import * as Contract from "@nereid/core/internal/contract/Contract"
import * as OnnxContract from "@nereid/onnx/internal/OnnxContract"
import * as OnnxFile from "@nereid/onnx/internal/OnnxFile"
import type { FoundContracts, SourceOptions } from "./FoundContract.ts"
import { GenerateError } from "./GenerateError.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Maximum batch size, in rows, that a repository uses by default. */
const defaultMaxBatchSize = 4

export const read = Effect.fn("FileSource.read")(function* (
  file: string,
  options: SourceOptions,
): Effect.fn.Return<FoundContracts, GenerateError> {
  const { models, maxBatchSize } = options
  const [name = modelName(file), other] = models
  if (other !== undefined)
    return yield* new GenerateError({
      message: `--model: ${file} contains one model, but ${models.length} names were given`,
    })
  if (options.version !== undefined)
    return yield* new GenerateError({ message: "--model-version: an .onnx file has no versions" })
  const bytes = yield* Effect.tryPromise({
    try: () => readFile(file),
    catch: (error) => new GenerateError({ message: `cannot read ${file}: ${errorMessage(error)}` }),
  })
  const signature = yield* Effect.try({
    try: () => OnnxFile.signature(bytes),
    catch: (error) => new GenerateError({ message: `${file} is not an ONNX model: ${errorMessage(error)}` }),
  })
  const sourceContract = OnnxContract.make(name, signature)
  const batches = Contract.canBatch(sourceContract)
  const contract = yield* Effect.mapError(
    Effect.fromResult(Contract.batched(sourceContract, maxBatchSize ?? (batches ? defaultMaxBatchSize : 0))),
    (message) => new GenerateError({ message }),
  )
  const isGuess = maxBatchSize === undefined && batches
  const note = `model '${name}': assuming that the first dimension is the batch dimension; set --max-batch-size to change the limit, or to 0 for no batching`
  return {
    contracts: [
      { sourceContract: maxBatchSize === undefined ? sourceContract : contract, entry: { contract, source: file } },
    ],
    isComplete: false,
    notes: isGuess ? [note] : [],
  }
})

/** `models/resnet/1/model.onnx` is the model `resnet`, `digits.onnx` is `digits`. */
const modelName = (file: string): string => {
  const name = basename(file, extname(file))
  const version = dirname(resolve(file))
  return name === "model" && /^[1-9][0-9]*$/.test(basename(version)) ? basename(dirname(version)) : name
}
