/** Flags of V8 while a server starts. test/programs/serve.test.ts has what they do. */
import { expect, it, vi } from "vitest"
import * as StartFlags from "./StartFlags.ts"

it("are reset after ten seconds, also if the server has not started", () => {
  vi.useFakeTimers()
  const run = vi.fn()
  StartFlags.resetAtLimit(run)
  vi.advanceTimersByTime(9999)
  expect(run).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(run).toHaveBeenCalledOnce()
  vi.useRealTimers()
})
