/** Routes that list, export and import the live sequences of a model, as JSON. */
import { Effect, Result } from "effect"
import * as SequencesDocument from "@nereid/core/internal/codec/json/SequencesDocument"
import { type InferenceError, InvalidRequest, Unsupported } from "@nereid/core/Errors"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { statusTag } from "@nereid/core/internal/wire/ErrorStatus"
import type { Gateway } from "../gateway/Gateway.ts"
import { sendError, sendResult } from "../port/HttpReply.ts"
import { collect } from "./HttpBody.ts"
import type { HttpCall } from "./HttpCall.ts"
import * as HttpEffect from "./HttpEffect.ts"
import type { Route } from "./HttpRoute.ts"

/** Ids that a list has at most. */
const maxListed = 1000

/** Maximum time that an export waits for running requests, in milliseconds. */
const maxWait = 60_000

/** Maximum size of the selection of an export, in bytes. */
const maxSelectionSize = 1024 * 1024

/** Characters of an exported sequence beside its state, roughly. */
const sequenceOverhead = 256

const path = "/v2/models/(?<name>[^/]+)(?:/versions/(?<version>[0-9]+))?/sequences"

/** `maxInputSize`: maximum size of an import, and about that of an export, in bytes. */
export const routes = (gateway: Gateway, maxInputSize: number): ReadonlyArray<Route> => [
  {
    method: "GET",
    api: "model-repository",
    path: new RegExp(`^${path}$`),
    handle: (call) => sendResult(call.response, Result.map(found(gateway, call), listed)),
  },
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${path}/export$`),
    handle: (call) => exported(gateway, call, maxInputSize),
  },
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${path}/import$`),
    handle: (call) =>
      collect(call, maxInputSize, (body) => call.guard(() => sendResult(call.response, imported(gateway, call, body)))),
  },
]

type Sequences = NonNullable<RunningModel["life"]["sequences"]>

interface Found {
  readonly model: RunningModel
  readonly sequences: Sequences
}

const found = (gateway: Gateway, { model: { name, version } }: HttpCall): Result.Result<Found, InferenceError> =>
  Result.flatMap(gateway.model(name, version), (model) => {
    const { sequences } = model.life
    if (sequences !== undefined) return Result.succeed({ model, sequences })
    return Result.fail(new Unsupported({ message: `model '${name}' has no sequences on this server` }))
  })

const listed = ({ model, sequences }: Found) => {
  const counts = model.life.activity().sequences
  return {
    model: model.description.name,
    version: model.description.version,
    live: counts?.live ?? 0,
    backlog: counts?.backlog ?? 0,
    state_bytes: counts?.stateBytes ?? 0,
    movable: sequences.problem === undefined,
    sequences: sequences.ids(maxListed).map(SequencesDocument.idDocument),
  }
}

const exported = (gateway: Gateway, call: HttpCall, maxInputSize: number): void => {
  const { response, memory } = call
  const model = found(gateway, call)
  // Reported before an invalid body.
  if (Result.isFailure(model)) return sendError(response, model.failure)
  const { sequences } = model.success
  collect(call, maxSelectionSize, (body) =>
    call.guard(() => {
      const selection = Result.flatMap(SequencesDocument.readSelection(body), checkWait)
      if (Result.isFailure(selection)) return sendError(response, selection.failure)
      const { ids, waitMillis: wait } = selection.success
      const bytes = Math.min(maxInputSize, listed(model.success).state_bytes * 2 + sequenceOverhead)
      const full = memory.take(bytes)
      if (full !== undefined) return sendError(response, full)
      response.on("close", () => memory.give(bytes))
      const maxSequences = SequencesDocument.maxSequences
      const result = Effect.map(
        // Base64 has 4 characters for 3 bytes.
        sequences.exportSequences({ ids, wait, maxSequences, maxBytes: Math.floor((maxInputSize * 3) / 5) }),
        (group) => ({ ...SequencesDocument.document(group), remaining: remaining(model.success) }),
      )
      HttpEffect.respond(call, result, (outcome) => sendResult(response, outcome))
    }),
  )
}

const remaining = ({ model }: Found): number => {
  const counts = model.life.activity().sequences
  return (counts?.live ?? 0) + (counts?.backlog ?? 0)
}

const checkWait = (
  selection: SequencesDocument.Selection,
): Result.Result<SequencesDocument.Selection, InvalidRequest> => {
  const { waitMillis = 0 } = selection
  if (waitMillis <= maxWait) return Result.succeed(selection)
  return Result.fail(new InvalidRequest({ message: `wait_ms must be at most ${maxWait}, got ${waitMillis}` }))
}

const imported = (gateway: Gateway, call: HttpCall, body: Uint8Array) =>
  Result.gen(function* () {
    const { sequences } = yield* found(gateway, call)
    const outcomes = yield* sequences.importSequences(yield* SequencesDocument.read(body))
    const refused = outcomes.flatMap(({ id, problem }) =>
      problem === undefined
        ? []
        : [{ ...SequencesDocument.idDocument(id), kind: statusTag(problem), error: problem.message }],
    )
    return { imported: outcomes.length - refused.length, refused }
  })
