import { setImmediate as nextTurn } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import * as SlicedWork from "./SlicedWork.ts"

const slices = function* (log: Array<string>, name: string, count: number): Generator<undefined, string> {
  for (let slice = 1; slice < count; slice++) {
    log.push(`${name}${slice}`)
    yield
  }
  log.push(`${name}${count}`)
  return name
}

const unexpected = (error: unknown) => {
  throw error
}

it("work of one slice is done at once", () => {
  const log: Array<string> = []
  SlicedWork.run(slices(log, "a", 1), (name) => log.push(`${name} done`), unexpected)
  expect(log).toEqual(["a1", "a done"])
})

it("all work together does one slice per turn, in order of arrival", async () => {
  const log: Array<string> = []
  const done = new Promise<void>((resolve, reject) => {
    SlicedWork.run(slices(log, "a", 3), (name) => log.push(`${name} done`), unexpected)
    SlicedWork.run(
      slices(log, "b", 3),
      (name) => {
        log.push(`${name} done`)
        resolve()
      },
      reject,
    )
  })
  await done
  expect(log).toEqual(["a1", "b1", "a2", "b2", "a3", "a done", "b3", "b done"])
})

it("cancelled work does no further slice and calls nothing", async () => {
  const log: Array<string> = []
  const cancel = SlicedWork.run(slices(log, "a", 3), (name) => log.push(`${name} done`), unexpected)
  cancel()
  await new Promise<void>((resolve, reject) => SlicedWork.run(slices(log, "b", 3), () => resolve(), reject))
  await nextTurn()
  expect(log).toEqual(["a1", "b1", "b2", "b3"])
})

const throwing = function* (after: number): Generator<undefined, never> {
  for (let slice = 0; slice < after; slice++) yield
  throw new Error(`after ${after}`)
}

it("an error of a slice is reported once, and other work goes on", async () => {
  const log: Array<string> = []
  const failed = (error: unknown) => log.push(String(error))
  const done = () => log.push("done")
  SlicedWork.run(throwing(0), done, failed)
  expect(log).toEqual(["Error: after 0"])
  SlicedWork.run(throwing(1), done, failed)
  await new Promise<void>((resolve, reject) => SlicedWork.run(slices(log, "b", 3), () => resolve(), reject))
  expect(log).toEqual(["Error: after 0", "b1", "Error: after 1", "b2", "b3"])
})
