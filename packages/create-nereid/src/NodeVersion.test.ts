import { expect, it } from "vitest"
import { isSupported } from "./NodeVersion.ts"

it.each([
  ["22.19.0", true],
  ["22.18.9", false],
  ["22.100.0", true],
  ["24.0.0", true],
  ["20.20.2", false],
  ["9.0.0", false],
  ["23.0.0-nightly", true],
] as const)("Node %s is supported by >=22.19: %s", (version, expected) => {
  expect(isSupported(version, ">=22.19")).toBe(expected)
})
