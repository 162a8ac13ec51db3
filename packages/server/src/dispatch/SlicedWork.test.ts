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

it("work of one slice is done at once", () => {
  const log: Array<string> = []
  SlicedWork.run(slices(log, "a", 1), (name) => log.push(`${name} done`))
  expect(log).toEqual(["a1", "a done"])
})

it("all work together does one slice per turn, in order of arrival", async () => {
  const log: Array<string> = []
  const done = new Promise<void>((resolve) => {
    SlicedWork.run(slices(log, "a", 3), (name) => log.push(`${name} done`))
    SlicedWork.run(slices(log, "b", 3), (name) => {
      log.push(`${name} done`)
      resolve()
    })
  })
  await done
  expect(log).toEqual(["a1", "b1", "a2", "b2", "a3", "a done", "b3", "b done"])
})

it("cancelled work does no further slice and calls nothing", async () => {
  const log: Array<string> = []
  const cancel = SlicedWork.run(slices(log, "a", 3), (name) => log.push(`${name} done`))
  cancel()
  await new Promise<void>((resolve) => SlicedWork.run(slices(log, "b", 3), () => resolve()))
  await nextTurn()
  expect(log).toEqual(["a1", "b1", "b2", "b3"])
})
