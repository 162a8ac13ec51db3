import { expect, it } from "vitest"
import * as ImportProblem from "./ImportProblem.ts"

const withStack = (stack: string) => Object.assign(new Error("no weights"), { stack })

it.each([
  ["a module", "Error: no weights\n    at file:///app/models.ts:2:7", "/app/models.ts:2:7"],
  ["a function", "Error: no weights\n    at load (file:///app/models.ts:2:7)", "/app/models.ts:2:7"],
  ["a script", "Error: no weights\n    at Object.<anonymous> (/app/models.cjs:2:7)", "/app/models.cjs:2:7"],
  ["a module with a query", "Error: no weights\n    at file:///app/models.ts?version=1a:2:7", "/app/models.ts:2:7"],
  ["a syntax error", "file:///app/models.ts:3\n  let let", "/app/models.ts:3"],
  ["a module on Windows", "Error: no weights\n    at async file:///C:/app/models.ts:2:7", "C:/app/models.ts:2:7"],
  ["a script on Windows", "Error: no weights\n    at load (C:\\app\\models.cjs:2:7)", "C:\\app\\models.cjs:2:7"],
  ["a syntax error on Windows", "file:///C:/app/models.ts:3\n  let let", "C:/app/models.ts:3"],
  ["a syntax error in a script on Windows", "C:\\app\\models.cjs:3\n  let let", "C:\\app\\models.cjs:3"],
])("has the place of %s", (_, stack, place) => {
  expect(ImportProblem.text(withStack(stack))).toBe(`no weights (${place})`)
})

it("has no place where the stack has none in a file", () => {
  expect(ImportProblem.text(withStack("Error: no weights\n    at node:internal/modules/esm:1:1"))).toBe("no weights")
  expect(ImportProblem.text("no weights")).toBe("no weights")
})
