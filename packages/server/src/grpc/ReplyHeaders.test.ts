import { expect, it } from "vitest"
import * as ReplyHeaders from "./ReplyHeaders.ts"

it.each([
  ["22.19.0", false],
  ["22.20.0", true],
  ["23.11.1", false],
  ["24.6.0", false],
  ["24.7.0", true],
  ["25.0.0", true],
  ["26.10.0", true],
])("Node %s accepts an array: %s", (version, isArray) => {
  const headers = ReplyHeaders.make(version)
  expect(Array.isArray(headers)).toBe(isArray)
  expect(headers).toEqual(
    isArray
      ? [":status", "200", "content-type", "application/grpc+proto"]
      : { ":status": 200, "content-type": "application/grpc+proto" },
  )
})
