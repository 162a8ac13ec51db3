import { expect, it } from "vitest"
import * as LogFlags from "./LogFlags.ts"

// Measured with Triton 2.51.
it.each([
  [undefined, true],
  ["0", false],
  ["", true],
  ["false", true],
  ["1", true],
])("TRITON_SERVER_ESCAPE_LOG_MESSAGES=%s", (value, escapeMessages) => {
  expect(LogFlags.environmentOptions({ TRITON_SERVER_ESCAPE_LOG_MESSAGES: value })).toEqual({ escapeMessages })
})
