/** The load order of models, and models that are never loaded. */
import { expect, it } from "vitest"
import * as LoadOrder from "./LoadOrder.ts"

const order = (needs: Record<string, ReadonlyArray<string>>, loaded: Record<string, ReadonlyArray<string>> = {}) => {
  const { stages, cycles } = LoadOrder.make(new Map(Object.entries(needs)), (name) => loaded[name] ?? [])
  return { stages, cycles: Object.fromEntries(cycles) }
}

it("dependencies come first, and independent models together", () => {
  expect(order({ top: ["middle", "a"], a: [], middle: ["b", "elsewhere"], b: [] })).toEqual({
    stages: [["a", "b"], ["middle"], ["top"]],
    cycles: {},
  })
})

it("models of a cycle fail, and their dependents come after them", () => {
  const { stages, cycles } = order({ a: ["b"], b: ["c"], c: ["a"], after: ["a"], self: ["self"] })
  expect(cycles).toEqual({
    a: "circular dependency between ensembles: a -> ... -> c -> a",
    b: "circular dependency between ensembles: b -> ... -> a -> b",
    c: "circular dependency between ensembles: c -> ... -> b -> c",
    self: "circular dependency between ensembles: self -> ... -> self -> self",
  })
  expect(stages.flat().toSorted()).toEqual(["a", "after", "b", "c", "self"])
})

it("a circle may go through what is loaded already", () => {
  expect(order({ a: ["b"] }, { b: ["c"], c: ["a"] }).cycles).toEqual({
    a: "circular dependency between ensembles: a -> ... -> c -> a",
  })
})
