import { expect, it } from "@effect/vitest"
import { DeclaredFailure, fromTag, MalformedRequest, type Tag, Unrecoverable } from "../error/InferenceError.ts"
import { tagOf } from "./ErrorHeaders.ts"
import { errorStatuses, fromGrpc, fromHttp, statusOf } from "./ErrorStatus.ts"

const tags = Object.keys(errorStatuses) as Array<Tag>

it.each(tags)("%s has the status of its row", (tag) => {
  const error = fromTag(tag, "text")
  if (error === undefined) throw new Error(`${tag} has no error`)
  expect(statusOf(error)).toEqual(errorStatuses[tag])
  expect(tagOf(error)).toBe(tag)
})

it("a body that cannot be parsed is the caller's mistake over HTTP, except for a wrong extent", () => {
  const status = (message: string) => statusOf(new MalformedRequest({ message }))
  const parse = (field: string) =>
    `Unable to parse '${field}': attempt to access JSON non-unsigned-integer as unsigned-integer (-5)`
  expect(status(parse("binary_data_size"))).toEqual({ grpc: 13, http: 400 })
  expect(status(parse("shape"))).toEqual({ grpc: 13, http: 500 })
})

it("a declared error has its declared status", () => {
  const error = new DeclaredFailure({
    message: "",
    kind: "TooDark",
    http: 422,
    grpc: 9,
    document: undefined,
    error: undefined,
  })
  expect(statusOf(error)).toMatchObject({ http: 422, grpc: 9 })
  expect(tagOf(error)).toBe("TooDark")
})

it("an unrecoverable failure is an ExecutionFailed for remote callers, whose process is fine", () => {
  const error = new Unrecoverable({ message: "lost" })
  expect(statusOf(error)).toEqual(errorStatuses.ExecutionFailed)
  expect(tagOf(error)).toBe("ExecutionFailed")
})

it.each([
  [14, "Exceeds maximum queue size", "QueueFull"],
  [14, "Request timeout expired", "QueueTimeout"],
  [14, "connection refused", "Unavailable"],
  [8, "Received message larger than max (9 vs. 8)", "InvalidRequest"],
  [8, "too busy", "QueueFull"],
  [5, "no model", "ModelNotFound"],
  [6, "there already", "AlreadyExists"],
  [3, "wrong shape", "InvalidRequest"],
  [4, "late", "DeadlineExceeded"],
  [1, "gone", "Cancelled"],
  [12, "no such method", "Unsupported"],
  [13, "broken", "ExecutionFailed"],
  [2, "who knows", "ExecutionFailed"],
] as const)("gRPC status %i (%s) of another server becomes %s", (code, message, tag) => {
  expect(fromGrpc(code, message)).toMatchObject({ _tag: tag, message })
})

it.each([
  [503, "[request id: 1] Exceeds maximum queue size", "QueueFull"],
  [503, "Request timeout expired", "QueueTimeout"],
  [503, "stopping", "Unavailable"],
  [502, "bad gateway", "Unavailable"],
  [504, "late", "DeadlineExceeded"],
  [429, "slow down", "QueueFull"],
  [404, "no model", "ModelNotFound"],
  [400, "wrong shape", "InvalidRequest"],
  [501, "no such thing", "Unsupported"],
  [500, "broken", "ExecutionFailed"],
] as const)("HTTP status %i (%s) of another server becomes %s", (status, message, tag) => {
  expect(fromHttp(status, message)).toMatchObject({ _tag: tag, message })
})
