import { expect, it } from "vitest"
import { PrintedLines } from "./PrintedLines.ts"

const printer = () => {
  const printed: Array<string> = []
  const clock = { now: 0 }
  return {
    printed,
    clock,
    lines: new PrintedLines(
      (line) => printed.push(line),
      () => clock.now,
    ),
  }
}

it("lines may come in any portions, and the last one without an end", () => {
  const { printed, lines } = printer()
  const bytes = Buffer.from("grüße\r\n\nb\nc")
  for (const byte of bytes) lines.write(Buffer.of(byte))
  lines.end()
  expect(printed).toEqual(["grüße", "", "b", "c"])
})

it("a long line is cut", () => {
  const { printed, lines } = printer()
  lines.write(Buffer.from(`${"x".repeat(100_000)}`))
  lines.write(Buffer.from(`${"x".repeat(100_000)}\nb\n`))
  expect(printed).toEqual([`${"x".repeat(8192)}… (cut)`, "b"])
})

it("lines beyond the rate are dropped and counted: 10,000 at once, 500 per second from then on", () => {
  const { printed, clock, lines } = printer()
  lines.write(Buffer.from("a\n".repeat(10_700)))
  expect(printed).toHaveLength(10_000)
  clock.now = 1000
  lines.write(Buffer.from("b\n".repeat(600)))
  expect(printed.slice(10_000, 10_002)).toEqual(["(700 lines were dropped: more than 500 per second)", "b"])
  lines.end()
  expect(printed.at(-1)).toBe("(100 lines were dropped: more than 500 per second)")
})
