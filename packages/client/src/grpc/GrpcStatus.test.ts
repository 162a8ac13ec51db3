import { expect, it } from "vitest"
import { fromHeaders, fromTrailers, percentDecode, timeoutHeader } from "./GrpcStatus.ts"

it("a deadline has at most eight digits and is never rounded to nothing", () => {
  expect([0, 0.2, 1500.5, 99_999_999, 100_000_000, 1e15].map(timeoutHeader)).toEqual([
    "1m",
    "1m",
    "1501m",
    "99999999m",
    "100000S",
    "99999999S",
  ])
})

it("messages are percent-decoded, and shown as they are where they are not encoded", () => {
  expect(percentDecode("100%25 gr%C3%B6%C3%9Fer")).toBe("100% größer")
  expect(percentDecode("100% larger")).toBe("100% larger")
  expect(percentDecode("%E4")).toBe("%E4")
})

it("a status that is no number is unknown", () => {
  expect(fromTrailers({ "grpc-status": "x" })).toMatchObject({ code: 2 })
  expect(fromTrailers({ "grpc-status": "-1" })).toMatchObject({ code: 2 })
  expect(fromTrailers({ "grpc-status": "00" })).toMatchObject({ code: 2 })
  expect(fromTrailers({})).toBeUndefined()
  expect(fromTrailers({ "grpc-status": "0" })).toBe("ok")
})

it.each([
  [400, 13],
  [401, 16],
  [403, 7],
  [404, 12],
  [429, 14],
  [502, 14],
  [503, 14],
  [504, 14],
  [500, 2],
  [302, 2],
])("HTTP status %i is gRPC code %i", (status, code) => {
  expect(fromHeaders({ ":status": String(status) })).toMatchObject({ code })
})

it.each([
  ["application/grpc", undefined],
  ["application/grpc+proto", undefined],
  ["application/grpc; x=y", undefined],
  ["application/grpc-web", 2],
  ["text/html", 2],
])("content-type %s", (type, code) => {
  expect(fromHeaders({ ":status": "200", "content-type": type })?.code).toBe(code)
})
