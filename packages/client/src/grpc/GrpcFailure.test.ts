import { expect, it } from "vitest"
import { Result } from "effect"
import { fromHeaders, fromTrailers, unfinished } from "./GrpcFailure.ts"

it("trailers say how a call ended, and fail with their metadata", () => {
  const trailers = { "grpc-status": "5", "grpc-message": "gr%C3%B6%C3%9Fer", "nereid-error": "ModelNotFound" }
  expect(fromTrailers(trailers)).toEqual(Result.fail({ code: 5, message: "größer", metadata: trailers }))
  expect(fromTrailers({ "grpc-status": "5" })).toMatchObject({ failure: { code: 5, message: "" } })
  expect(fromTrailers({})).toBeUndefined()
  expect(fromTrailers({ "grpc-status": "0" })).toEqual(Result.void)
})

it("a status that is not a number is unknown", () => {
  expect(fromTrailers({ "grpc-status": "x" })).toMatchObject({ failure: { code: 2 } })
  expect(fromTrailers({ "grpc-status": "-1" })).toMatchObject({ failure: { code: 2 } })
  expect(fromTrailers({ "grpc-status": "00" })).toMatchObject({ failure: { code: 2 } })
})

it.each([
  [400, 13],
  [503, 14],
])("HTTP status %i is gRPC code %i", (status, code) => {
  expect(fromHeaders({ ":status": String(status) })).toMatchObject({ code })
})

it.each([
  ["application/grpc+proto", undefined],
  ["text/html", 2],
])("content-type %s", (type, code) => {
  expect(fromHeaders({ ":status": "200", "content-type": type })?.code).toBe(code)
})

it("a stream that ends without a status has the code of its reset", () => {
  expect([undefined, 0, 2, 8].map((error) => unfinished(error).code)).toEqual([14, 14, 13, 1])
})
