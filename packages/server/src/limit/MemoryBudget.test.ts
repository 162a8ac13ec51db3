import { expect, test } from "vitest"
import { MemoryBudget } from "./MemoryBudget.ts"

const refusal = (budget: MemoryBudget, connection: object, bytes: number) => budget.of(connection).take(bytes)?.message

test("one connection may take the whole budget, and nothing beyond it", () => {
  const budget = new MemoryBudget(100)
  const connection = {}
  expect(refusal(budget, connection, 60)).toBeUndefined()
  expect(refusal(budget, connection, 40)).toBeUndefined()
  expect(refusal(budget, connection, 1)).toBe("callers hold 100 bytes of this server's memory, at most 100")
})

test("a refused take has no effect, and bytes that are given back can be taken again", () => {
  const budget = new MemoryBudget(100)
  const connection = {}
  budget.of(connection).take(60)
  expect(refusal(budget, connection, 41)).toBeDefined()
  expect(budget.used).toBe(60)
  budget.of(connection).give(60)
  expect(refusal(budget, {}, 100)).toBeUndefined()
})

test("above half of the budget, no connection takes more than its fair share", () => {
  const budget = new MemoryBudget(100)
  const [greedy, modest] = [{}, {}]
  budget.of(greedy).take(50)
  expect(refusal(budget, modest, 30)).toBeUndefined()
  expect(refusal(budget, greedy, 1)).toBe(
    "this connection holds 50 bytes of this server's memory, at most 50 while callers hold 80 of 100 bytes",
  )
  expect(refusal(budget, modest, 20)).toBeUndefined()
})

test("connections that hold nothing have no share", () => {
  const budget = new MemoryBudget(100)
  for (let index = 0; index < 10; index++) {
    const connection = {}
    budget.of(connection).take(10)
    budget.of(connection).give(10)
  }
  expect(budget.holders).toBe(0)
  expect(refusal(budget, {}, 100)).toBeUndefined()
})

test("small responses are counted and never refused", () => {
  const budget = new MemoryBudget(100)
  const memory = budget.of({})
  memory.take(100)
  expect(memory.takeResponse(4096)).toBeUndefined()
  expect(budget.used).toBe(4196)
  expect(memory.takeResponse(4097)).toMatchObject({ _tag: "QueueFull", retryAfter: 1000 })
})

test("bytes that have not arrived are reserved from the first half only", () => {
  const budget = new MemoryBudget(100)
  expect(budget.of({}).reserve(50)).toBe(true)
  expect(budget.of({}).reserve(1)).toBe(false)
  expect(refusal(budget, {}, 33)).toBeUndefined()
})

test("each refusal is reported", () => {
  const reports: Array<string> = []
  const budget = new MemoryBudget(1, { acted: (limit, message) => reports.push(`${limit}: ${message}`) })
  budget.unattributed.take(2)
  expect(reports).toEqual([
    "held_memory: Refused a request or a response: callers hold 0 bytes of this server's memory, at most 1",
  ])
})
