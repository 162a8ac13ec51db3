import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  DeclaredFailure,
  fromTag,
  type InferenceError,
  isInferenceError,
  Unavailable,
  Unrecoverable,
  withMessage,
} from "./InferenceError.ts"

const declared = new DeclaredFailure({
  message: "dark",
  kind: "TooDark",
  http: 422,
  grpc: 9,
  document: undefined,
  error: undefined,
})

it("an error is restored from its tag", () => {
  const error = fromTag("QueueFull", "text", 5)
  expect(error).toMatchObject({ _tag: "QueueFull", message: "text", retryAfter: 5 })
  expect(isInferenceError(error)).toBe(true)
})

it.each(["toString", "Unrecoverable", "DeclaredFailure"])("%s is not a tag that travels", (tag) => {
  expect(fromTag(tag, "text")).toBeUndefined()
})

it("an error of any other kind is not one of these", () => {
  expect(isInferenceError(new Error("text"))).toBe(false)
  expect(isInferenceError(Object.assign(new Error("text"), { _tag: "DeclaredFailure" }))).toBe(false)
})

it.effect("catchTag finds an unrecoverable failure and a declared one, and ExecutionFailed is neither", () =>
  Effect.gen(function* () {
    const caught = (error: InferenceError) =>
      Effect.fail(error).pipe(
        Effect.catchTag("ExecutionFailed", () => Effect.succeed("execution failed")),
        Effect.catchTag("Unrecoverable", ({ message }) => Effect.succeed(`unrecoverable: ${message}`)),
        Effect.catchTag("DeclaredFailure", ({ kind }) => Effect.succeed(`declared: ${kind}`)),
      )
    expect(yield* caught(new Unrecoverable({ message: "lost" }))).toBe("unrecoverable: lost")
    expect(yield* caught(declared)).toBe("declared: TooDark")
  }),
)

it("another message keeps the tag and the pause before a retry", () => {
  const error = new Unavailable({ message: "one", retryAfter: 7 })
  expect(withMessage(error, "other")).toMatchObject({ _tag: "Unavailable", message: "other", retryAfter: 7 })
  expect(withMessage(declared, "other")).toMatchObject({ _tag: "ExecutionFailed", message: "other" })
})
