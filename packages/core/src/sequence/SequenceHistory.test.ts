import { expect, it } from "vitest"
import { EndedByModel } from "./SequenceHistory.ts"

const ended = { reason: "ended", idleMillis: undefined } as const

it("a model that is loaded again has the history of the load before, another version has its own", () => {
  const history = new EndedByModel()
  history.of("m", "1").add(7n, ended)
  expect(history.of("m", "1").get(7n)).toMatchObject(ended)
  expect(history.of("m", "2").get(7n)).toBeUndefined()
})

it("of more than 1,000 models, those whose last load is the longest ago are forgotten", () => {
  const history = new EndedByModel()
  for (const name of ["a", "b"]) history.of(name, "1").add(1n, ended)
  history.of("a", "1")
  for (let index = 0; index < 999; index++) history.of(`m${index}`, "1")
  expect(history.of("a", "1").get(1n)).toMatchObject(ended)
  expect(history.of("b", "1").get(1n)).toBeUndefined()
})
