import { expect, it } from "vitest"
import { compressedFlag, frame, isWhole, messageLength, prefixLength, writePrefix } from "./GrpcFrame.ts"

it.each([
  [0, [0, 0, 0, 0, 0]],
  [1, [0, 0, 0, 0, 1]],
  [0x01020304, [0, 1, 2, 3, 4]],
  [2 ** 32 - 1, [0, 255, 255, 255, 255]],
])("a length of %i is written and read as %j", (length, prefix) => {
  const bytes = new Uint8Array(prefixLength + 2).fill(7)
  writePrefix(bytes, 2, length)
  expect([...bytes]).toEqual([7, 7, ...prefix])
  expect(compressedFlag(bytes, 2)).toBe(0)
  expect(messageLength(bytes, 2)).toBe(length)
})

it("a frame is the message behind its prefix", () => {
  expect([...frame(Uint8Array.of(9, 8))]).toEqual([0, 0, 0, 0, 2, 9, 8])
})

it.each([
  [[0, 0, 0, 0, 2, 9, 8], true],
  [[0, 0, 0, 0, 0], true],
  [[0, 0, 0, 0, 2, 9], false],
  [[0, 0, 0, 0, 2, 9, 8, 0], false],
  [[1, 0, 0, 0, 2, 9, 8], false],
  [[0, 0, 0, 0, 3, 9, 8, 7], false],
  [[0, 0, 0, 0], false],
])("%j is one whole message of at most 2 bytes: %s", (bytes, expected) => {
  expect(isWhole(Uint8Array.from(bytes), 2)).toBe(expected)
})
