import { expect, it } from "@effect/vitest"
import { fromGrpc, fromHttp, fromTag, grpcCode, httpStatus, isInferenceError, table, type Tag } from "./Errors.ts"

const tags = Object.keys(table) as Array<Tag>

it.each(tags)("%s is made again from its tag, with its code and status", (tag) => {
  const error = fromTag(tag, "text")
  if (error === undefined) throw new Error(`${tag} has no error`)
  expect(error).toMatchObject({ _tag: tag, message: "text" })
  expect(isInferenceError(error)).toBe(true)
  expect([grpcCode(error), httpStatus(error)]).toEqual([table[tag].grpc, table[tag].http])
})

it("an unknown tag is none", () => {
  expect(fromTag("toString", "text")).toBeUndefined()
  expect(isInferenceError(new Error("text"))).toBe(false)
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
