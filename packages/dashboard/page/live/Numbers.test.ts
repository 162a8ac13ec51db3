import { expect, it } from "vitest"
import * as Numbers from "./Numbers.ts"

it.each([
  [undefined, "–"],
  [0, "0 µs"],
  [0.0004, "0.4 µs"],
  [0.01234, "12.3 µs"],
  [1.234, "1.23 ms"],
  [123.4, "123 ms"],
  [9_999, "9,999 ms"],
  [12_345, "12.3 s"],
])("writes %s milliseconds as %s", (millis, text) => expect(Numbers.duration(millis)).toBe(text))

it.each([
  [0, "0 kB"],
  [1_500, "1.5 kB"],
  [2_345_678, "2.35 MB"],
  [12e9, "12 GB"],
])("writes %s bytes as %s", (bytes, text) => expect(Numbers.size(bytes)).toBe(text))
