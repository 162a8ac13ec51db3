import type { Overload as Reported, Target } from "@nereid/bench/internal/target/Load"
import { expect, it } from "vitest"
import * as Overload from "./Overload.ts"

/** Answers each request with the next of these, again and again. */
const answering = (...answers: ReadonlyArray<{ readonly problem?: string; readonly overload?: Reported }>): Target => {
  let sent = 0
  return {
    perConnection: Infinity,
    connect: async ({ onReply }) => ({
      accepts: true,
      send: (startedAt) => {
        const { problem, overload } = answers[sent++ % answers.length] ?? {}
        setImmediate(() => onReply(startedAt, problem, overload))
      },
      close: () => {},
    }),
  }
}

const rate = (target: Target) => Overload.closedLoop({ target, connections: 1 }, 2, { warmUp: 0, requests: 20 })

it("the closed loop counts the answers of a server that refuses some requests", async () => {
  const refused = { problem: "UNAVAILABLE", overload: "refused" as const }
  const measured = rate(answering({}, refused))
  expect(await measured).toBeGreaterThan(0)
})

it("the closed loop fails if a server refuses all requests, or answers one with another error", async () => {
  await expect(rate(answering({ problem: "UNAVAILABLE", overload: "refused" }))).rejects.toThrow("UNAVAILABLE")
  await expect(rate(answering({}, {}, { problem: "INTERNAL" }))).rejects.toThrow("INTERNAL")
})
