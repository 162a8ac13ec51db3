import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { encodeMessage, maxMessageLength, shorten } from "./GrpcStatus.ts"
import * as GrpcTimeout from "./GrpcTimeout.ts"

it("any text becomes a header value that reads as the text again", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (message) => {
      const encoded = encodeMessage(message)
      expect(encoded).toMatch(/^([!-~]([ -~]*[!-~])?)?$/)
      expect(decodeURIComponent(encoded)).toBe(message)
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

it.each([
  ["1H", 3_600_000],
  ["2M", 120_000],
  ["3S", 3_000],
  ["99999999m", 99_999_999],
  ["500u", 0.5],
  ["0n", 0],
  ["100000000m", undefined],
  ["-1S", undefined],
  ["1.5S", undefined],
  ["1", undefined],
  ["S", undefined],
  ["1s", undefined],
  ["1toString", undefined],
  ["", undefined],
])("timeout '%s' is %s ms", (header, expected) => {
  expect(GrpcTimeout.parse(header)).toBe(expected)
})
