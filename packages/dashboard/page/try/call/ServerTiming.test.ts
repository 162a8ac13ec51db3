import { expect, it } from "vitest"
import { parse } from "./ServerTiming.ts"

it("has the phases in their order, and the size of the batch", () => {
  const header = 'queue;dur=0.12, input;dur=0.01, compute;dur=1.3, output;dur=0.02, batch;desc="8"'
  expect(parse(header)).toEqual({
    phases: [
      ["queue", 0.12],
      ["input", 0.01],
      ["compute", 1.3],
      ["output", 0.02],
    ],
    batch: 8,
  })
})

it("reads what others write as well", () => {
  expect(parse('cache;desc="a, b; \\"c\\"" ; DUR = 2.5,miss')).toEqual({ phases: [["cache", 2.5]], batch: undefined })
  expect(parse('batch;desc="many", x;dur=no')).toBe(undefined)
  expect(parse(null)).toBe(undefined)
})
