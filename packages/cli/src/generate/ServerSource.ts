/** The contracts of a server that runs: of any make, over either protocol. */
import { Effect, Result } from "effect"
import * as Contract from "@nereid/core/internal/contract/Contract"
import * as Inspection from "@nereid/client/internal/inspection/Inspection"
import type { FoundContracts, FoundContract, SourceOptions } from "./FoundContract.ts"
import * as ConnectionFlags from "../flags/ConnectionFlags.ts"
import { GenerateError, ofModels } from "./GenerateError.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export const read = (url: string, options: SourceOptions): Effect.Effect<FoundContracts, GenerateError> =>
  Effect.gen(function* () {
    const { version } = options
    const { headers, ...tls } = options.connection
    const inspection = yield* Effect.try({
      try: () =>
        Inspection.open({
          url,
          headers: Object.fromEntries(headers),
          tls: ConnectionFlags.tls(tls, /^(?:https|grpcs):/i.test(url), "the URL"),
          ...(version === undefined ? {} : { version }),
        }),
      catch: (error) => new GenerateError({ message: errorMessage(error) }),
    }).pipe(
      Effect.flatten,
      Effect.mapError(({ message }) => new GenerateError({ message })),
    )
    const isComplete = options.models.length === 0
    const { names, notes } = isComplete ? yield* ready(inspection, url) : { names: options.models, notes: [] }
    const results = yield* Effect.forEach(names, (name) => Effect.result(one(inspection, url, name, options)))
    const problems = results.flatMap((result, index) =>
      Result.isFailure(result) ? [[names[index] ?? "", result.failure] as const] : [],
    )
    if (problems.length > 0) return yield* ofModels(problems)
    const found = results.flatMap((result) => (Result.isSuccess(result) ? [result.success] : []))
    return {
      contracts: found.map(({ contract }) => contract),
      isComplete,
      notes: [...notes, ...found.flatMap(({ notes }) => notes)],
    }
  }).pipe(Effect.scoped)

interface Ready {
  readonly names: ReadonlyArray<string>
  readonly notes: ReadonlyArray<string>
}

/** The models that take requests. */
const ready = (inspection: Inspection.Inspection, url: string): Effect.Effect<Ready, GenerateError> =>
  Effect.matchEffect(inspection.index, {
    onFailure: ({ _tag, message }) => {
      const isSilent = !["Unavailable", "DeadlineExceeded"].includes(_tag)
      const unknownModels = `${url} does not list its models (${message}): name them with --model`
      return Effect.fail(new GenerateError({ message: isSilent ? unknownModels : message }))
    },
    onSuccess: (entries) => {
      const names = new Set(entries.filter(({ state }) => state === "READY").map(({ name }) => name))
      const others = new Set(entries.filter(({ name }) => !names.has(name)).map(({ name }) => `'${name}'`))
      const notes = others.size > 0 ? [`skipped models that are not ready: ${[...others].join(", ")}`] : []
      if (names.size > 0) return Effect.succeed({ names: [...names], notes })
      return Effect.fail(new GenerateError({ message: `${url} has no ready model` }))
    },
  })

/** Fails with what is wrong with it. */
const one = Effect.fn("ServerSource.readModel")(function* (
  inspection: Inspection.Inspection,
  url: string,
  name: string,
  { version, maxBatchSize }: SourceOptions,
): Effect.fn.Return<{ readonly contract: FoundContract; readonly notes: ReadonlyArray<string> }, string> {
  const found = yield* Effect.mapError(Inspection.contract(inspection, name), ({ message }) => message)
  const { contract: sourceContract, unconfigured, unreadable } = found
  if (sourceContract.inputs.length + sourceContract.outputs.length === 0) {
    return yield* Effect.fail("the server reports neither inputs nor outputs")
  }
  const contract = yield* Effect.fromResult(Contract.batched(sourceContract, maxBatchSize ?? 0))
  const entry = { contract, source: url, version }
  const ignored =
    unreadable === undefined ? [] : [`model '${name}': ignored the contract in its metadata: ${unreadable}`]
  if (unconfigured === undefined) return { contract: { sourceContract, entry }, notes: ignored }
  const note =
    `model '${name}': the server reports no configuration (${unconfigured}), so batching (--max-batch-size) and ` +
    "optional inputs are unknown"
  const completed = maxBatchSize === undefined ? sourceContract : contract
  return { contract: { sourceContract: completed, entry }, notes: [...ignored, note] }
})
