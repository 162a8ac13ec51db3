import * as fc from "fast-check"
import { expect, it } from "vitest"
import {
  codeOfHttpStatus,
  codeOfReset,
  decodeMessage,
  encodeMessage,
  maxMessageLength,
  read,
  shorten,
  trailers,
} from "./GrpcStatus.ts"

it("any text becomes a header value that reads as the text again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (message) => {
      const encoded = encodeMessage(message)
      expect(encoded).toMatch(/^([!-~]([ -~]*[!-~])?)?$/)
      expect(decodeMessage(encoded)).toBe(message)
    }),
  )
})

it("a text stays readable where it can", () => {
  expect(encodeMessage("model 'm': 100 %, naïve ")).toBe("model 'm': 100 %25, na%C3%AFve%20")
})

it("a text that is cut, or was cut before, has no half characters", () => {
  expect(shorten("😀".repeat(maxMessageLength)).isWellFormed()).toBe(true)
  expect(shorten(`x${"😀".repeat(maxMessageLength)}`).isWellFormed()).toBe(true)
  expect(encodeMessage("\ud83d")).toBe("%EF%BF%BD")
})

it("messages are percent-decoded, and shown as they are where they are not encoded", () => {
  expect(decodeMessage("100%25 gr%C3%B6%C3%9Fer")).toBe("100% größer")
  expect(decodeMessage("100% larger")).toBe("100% larger")
  expect(decodeMessage("%E4")).toBe("%E4")
})

it("a status is read as it was written", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 16 }), fc.string({ unit: "binary" }), (code, message) => {
      const fields = trailers(code, message)
      expect(read(fields["grpc-status"], fields["grpc-message"])).toEqual({ code, message })
    }),
  )
  expect(read("3", undefined)).toEqual({ code: 3, message: "" })
  expect(read("99", "odd")).toEqual({ code: 99, message: "odd" })
})

it.each(["x", "-1", "00", "", "1234567890"])("the unknown status '%s' is UNKNOWN", (status) => {
  const message = `the server sent the grpc-status ${JSON.stringify(status)}: 50%`
  expect(read(status, "50%25")).toEqual({ code: 2, message })
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
  expect(codeOfHttpStatus(status)).toBe(code)
})

it.each([
  [7, 14],
  [8, 1],
  [11, 8],
  [2, 13],
])("a reset with HTTP/2 error code %i is gRPC code %i", (error, code) => {
  expect(codeOfReset(error)).toBe(code)
})
