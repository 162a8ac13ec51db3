import { expect, it } from "vitest"
import type { EnsembleStep } from "../api/Protocol.ts"
import { columns } from "./GraphLayout.ts"

const step = (name: string, inputs: ReadonlyArray<string>, outputs: ReadonlyArray<string>): EnsembleStep => ({
  model_name: name,
  model_version: -1,
  input_map: Object.fromEntries(inputs.map((tensor, position) => [`I${position}`, tensor])),
  output_map: Object.fromEntries(outputs.map((tensor, position) => [`O${position}`, tensor])),
})

const names = (steps: ReadonlyArray<EnsembleStep>, ...inputs: ReadonlyArray<string>) =>
  columns(steps, inputs).map((column) => column.map(({ model_name: name }) => name))

it("puts a step behind those that make its inputs, in whatever order they are listed", () => {
  const [first, second] = [step("first", ["IN"], ["M"]), step("second", ["M"], ["OUT"])]
  expect(names([second, first], "IN")).toEqual([["first"], ["second"]])
})

it("puts steps that can run together into one column", () => {
  const steps = [step("left", ["IN"], ["L"]), step("right", ["IN"], ["R"]), step("join", ["L", "R"], ["OUT"])]
  expect(names(steps, "IN")).toEqual([["left", "right"], ["join"]])
})

it("ends for a graph without an order", () => {
  expect(names([step("a", ["B"], ["A"]), step("b", ["A"], ["B"])], "IN")).toEqual([["a", "b"]])
})
