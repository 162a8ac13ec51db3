import { expect, it } from "@effect/vitest"
import { DeclaredFailure, QueueFull, retryAfter } from "../error/InferenceError.ts"
import { documentOf, tagOf } from "./ErrorHeaders.ts"
import { statusOf } from "./ErrorStatus.ts"
import { fromTrailers, trailersOf } from "./ErrorTrailers.ts"

it.each([
  new QueueFull({ message: "full" }),
  new QueueFull({ message: "full", retryAfter: 1500 }),
  new DeclaredFailure({
    message: "dark",
    kind: "TooDark",
    http: 500,
    grpc: 9,
    document: '{"lux":3}',
    error: undefined,
  }),
])("an error is restored from its trailers: %o", (error) => {
  const trailers = trailersOf({ tag: tagOf(error), document: documentOf(error), retryAfter: retryAfter(error) })
  const restored = fromTrailers(statusOf(error).grpc, error.message, (name) => trailers[name])
  expect({ ...restored }).toEqual({ ...error })
})

it("without a tag the status names the error, and a pushback below 0 is not a time", () => {
  const fields: Record<string, string> = { "grpc-retry-pushback-ms": "-1" }
  const error = fromTrailers(14, "gone", (name) => fields[name])
  expect([error._tag, error.message, retryAfter(error)]).toEqual(["Unavailable", "gone", undefined])
})
