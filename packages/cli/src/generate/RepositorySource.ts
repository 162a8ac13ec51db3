/** The contracts of a model repository, or of one model's directory. */
import { existsSync, readdirSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, Result } from "effect"
import * as RepositoryContract from "@nereid/repository/internal/plan/RepositoryContract"
import type { FoundContracts, SourceOptions } from "./FoundContract.ts"
import { GenerateError, ofModels } from "./GenerateError.ts"

export const read = Effect.fn("RepositorySource.read")(function* (
  path: string,
  { models, version, maxBatchSize, configName }: SourceOptions,
): Effect.fn.Return<FoundContracts, GenerateError> {
  const isModel = isModelDirectory(path)
  const repository = isModel ? dirname(resolve(path)) : path
  const all = isModel
    ? [basename(resolve(path))]
    : yield* Effect.mapError(RepositoryContract.models(path), ({ message }) => new GenerateError({ message }))
  const requested = models.length > 0 ? models : all
  const missing = requested.filter((name) => !all.includes(name))
  if (missing.length > 0) {
    return yield* new GenerateError({ message: `${path} has no model ${quoted(missing)}; its models: ${quoted(all)}` })
  }
  if (requested.length === 0) return yield* new GenerateError({ message: `${path} contains no model directory` })
  const results = yield* Effect.forEach(requested, (name) =>
    Effect.result(
      RepositoryContract.read(repository, name, { version, configName, defaultMaxBatchSize: maxBatchSize }),
    ),
  )
  const problems = results.flatMap((result, index) =>
    Result.isFailure(result) ? [[requested[index] ?? "", result.failure.message] as const] : [],
  )
  if (problems.length > 0) return yield* ofModels(problems)
  const contracts = results.flatMap((result) => {
    if (Result.isFailure(result)) return []
    const contract = result.success
    const source = isModel ? path : join(path, contract.name)
    return [{ sourceContract: contract, entry: { contract, source, version } }]
  })
  return { contracts, isComplete: !isModel && models.length === 0, notes: [] }
})

/** Whether a directory is that of one model, and not a repository. */
const isModelDirectory = (path: string): boolean =>
  existsSync(join(path, "config.pbtxt")) ||
  readdirSync(path, { withFileTypes: true }).some((entry) => entry.isDirectory() && /^[1-9][0-9]*$/.test(entry.name))

const quoted = (names: ReadonlyArray<string>): string =>
  names.length === 0 ? "none" : names.map((name) => `'${name}'`).join(", ")
