/**
 * Hands the live sequences of a stopping server to another one, by the import route of its HTTP port. A sequence that
 * the other server does not take goes on here.
 */
import { Data, Duration, Effect, Result } from "effect"
import * as SequencesDocument from "@nereid/core/internal/codec/json/SequencesDocument"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import type { SequenceExport } from "@nereid/core/internal/request/SequenceExport"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { ServeError } from "./error/ServeError.ts"

/** The other server. */
export interface HandOver {
  /** Base URL, such as `http://models-2:8000`. */
  readonly url: string
  /** Headers of the imports, such as the secret of a restricted API. Default: none. */
  readonly headers?: { readonly [name: string]: string }
}

/** Limits of one import: far below the default limit of a body. */
const group = { maxBytes: 8 * 1024 * 1024, maxSequences: 1000 }

/** Time limit of one import. */
const timeout = Duration.seconds(10)

class HandOverFailed extends Data.TaggedError("HandOverFailed")<{ readonly message: string }> {}

/** Checks the URL and the headers. */
export const check = ({ url, headers = {} }: HandOver): Result.Result<Required<HandOver>, ServeError> => {
  const parsed = ServerUrl.parse(url, "http")
  if (Result.isFailure(parsed)) return Result.fail(new ServeError({ message: parsed.failure.message }))
  const { protocol, path } = parsed.success
  if (protocol !== "http") {
    return Result.fail(new ServeError({ message: "sequences are handed over by HTTP, not by gRPC" }))
  }
  for (const [name, value] of Object.entries(headers)) {
    // The value may be a secret.
    if (!isHeader(name, value)) {
      return Result.fail(new ServeError({ message: `handOverSequences: invalid header ${JSON.stringify(name)}` }))
    }
  }
  return Result.succeed({ url: ServerUrl.origin(parsed.success) + path, headers })
}

const isHeader = (name: string, value: string): boolean => {
  try {
    return new Headers({ [name]: value }).has(name)
  } catch {
    return false
  }
}

/** Moves all sequences that can be moved, and logs their number. `wait`: maximum time for running requests to end. */
export const run = (
  models: ReadonlyArray<RunningModel>,
  to: Required<HandOver>,
  wait: Duration.Duration,
): Effect.Effect<void> =>
  Effect.forEach(models, (model) => handOver(model, to, wait), { concurrency: 4, discard: true })

const handOver = Effect.fnUntraced(function* (
  { description: { name, version }, life: { sequences } }: RunningModel,
  to: Required<HandOver>,
  wait: Duration.Duration,
) {
  if (sequences === undefined || sequences.ids(1).length === 0) return
  const model = `model '${name}', version ${version}`
  const path = `/v2/models/${encodeURIComponent(name)}/versions/${version}/sequences/import`
  const moved = yield* Effect.result(
    sequences.moveSequences((exported) => send(to, path, exported), { ...group, wait }),
  )
  if (Result.isSuccess(moved)) {
    const { moved: count, stayed } = moved.success
    yield* Effect.logInfo(`Handed over ${count} sequences of ${model} to ${to.url}; ${stayed} stay`)
  } else {
    yield* Effect.logWarning(`Sequences of ${model} were not handed over to ${to.url}: ${moved.failure.message}`)
  }
})

/** Returns the ids that the other server has taken. */
const send = (to: Required<HandOver>, path: string, exported: SequenceExport) =>
  Effect.gen(function* () {
    const refused = yield* Effect.tryPromise({
      try: (signal) => post(to, path, exported, signal),
      catch: (error) => new HandOverFailed({ message: errorMessage(error) }),
    }).pipe(
      Effect.timeoutOrElse({
        duration: timeout,
        orElse: () => Effect.fail(new HandOverFailed({ message: "the other server did not answer in time" })),
      }),
    )
    const [first] = refused.values()
    if (first !== undefined) {
      yield* Effect.logWarning(`${to.url} refused ${refused.size} sequences; the first, ${first.id}: ${first.error}`)
    }
    return exported.sequences.map(({ id }) => id).filter((id) => !refused.has(keyOf(SequencesDocument.idDocument(id))))
  })

const post = async (
  { url, headers }: Required<HandOver>,
  path: string,
  exported: SequenceExport,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, SequencesDocument.RefusedSequence>> => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(SequencesDocument.document(exported)),
    redirect: "error",
    signal,
  })
  const bytes = new Uint8Array(await response.arrayBuffer())
  if (!response.ok) {
    throw new Error(`it answered ${response.status} ${new TextDecoder().decode(bytes.subarray(0, 500))}`)
  }
  const refused = Result.getOrThrow(SequencesDocument.readRefused(bytes))
  return new Map(refused.map((one) => [keyOf(one), one]))
}

const keyOf = ({ id, datatype }: SequencesDocument.IdDocument): string => `${datatype} ${id}`
