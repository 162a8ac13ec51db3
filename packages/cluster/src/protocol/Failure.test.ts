import { describe, expect, it } from "vitest"
import { Schema } from "effect"
import { DeclaredFailure, ExecutionFailed, QueueFull, SequenceNotFound, Unavailable } from "@nereid/core/Errors"
import * as Failure from "./Failure.ts"

const errors = [
  new ExecutionFailed({ message: "the handler failed" }),
  new Unavailable({ message: "gone", retryAfter: 250 }),
  new QueueFull({ message: "full" }),
  new SequenceNotFound({ message: "expired", reason: "expired", idleMillis: 30_000 }),
  new SequenceNotFound({ message: "unknown" }),
  new DeclaredFailure({
    message: "too long",
    kind: "TooLong",
    http: 500,
    grpc: 3,
    document: '{"limit":10}',
    error: undefined,
  }),
]

describe("an error on its way between runners", () => {
  it.each(errors)("arrives as it was: $_tag", (error) => {
    const json = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(Failure.Failure)))(Failure.fromError(error))
    const arrived = Failure.toError(Schema.decodeSync(Schema.fromJsonString(Schema.toCodecJson(Failure.Failure)))(json))
    expect(arrived).toBeInstanceOf(error.constructor)
    expect({ ...arrived, message: arrived.message }).toEqual({ ...error, message: error.message })
  })
})
