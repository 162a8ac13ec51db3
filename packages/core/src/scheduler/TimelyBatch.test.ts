import { constVoid } from "effect/Function"
import { expect, it } from "vitest"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import { noParameters } from "../request/Request.ts"
import { QueuedRequest } from "./QueuedRequest.ts"
import * as TimelyBatch from "./TimelyBatch.ts"

const queued = (dueAt: number, rows = 1): QueuedRequest => {
  const request = { id: "", inputs: [], rows, parameters: noParameters, deadline: undefined }
  const one = new QueuedRequest(request, constVoid, new ModelStatistics(), 0)
  one.dueAt = dueAt
  return one
}

/** Times at which those that are late were due, and the rows of the others. */
const choose = (dues: ReadonlyArray<number>, shortest: (rows: number) => number, maxRows = 32) => {
  const { late, rows } = TimelyBatch.choose(
    dues.map((due) => queued(due)),
    maxRows,
    100,
    shortest,
  )
  return { late: late.map(({ dueAt }) => dueAt), rows }
}

it("a batch whose requests all end in time has no limit", () => {
  expect(choose([200, 150, 300], () => 50)).toEqual({ late: [], rows: Infinity })
})

it("requests that cannot end in time are late", () => {
  expect(choose([200, 149, 300], () => 50)).toEqual({ late: [149], rows: Infinity })
})

it("a batch ends before a request that would make the first ones late", () => {
  expect(choose([122, 300, 300, 300], (rows) => 10 * rows)).toEqual({ late: [], rows: 2 })
})

it("the first ones are late instead, if a batch without them has more rows in a time", () => {
  expect(choose([132, 300, 300, 300, 300, 300], (rows) => 30 + rows)).toEqual({ late: [132], rows: Infinity })
})

it("looks at no more than a batch", () => {
  expect(choose([200, 150, 90], () => 50, 2)).toEqual({ late: [], rows: Infinity })
  const { rows } = TimelyBatch.choose([queued(111, 8), queued(300)], 4, 100, (count) => count)
  expect(rows).toBe(Infinity)
})
