import { expect, it } from "vitest"
import { byTag, type Document, namesIn, parametersOf, resolve, responsesOf } from "./Document.ts"

const document: Document = {
  info: { title: "t", version: "1" },
  paths: {
    "/v2": { get: { tags: ["server"] }, parameters: {} },
    "/x": { post: { tags: ["models"] }, get: {} },
  },
  components: {
    schemas: {
      "a/b": { type: "string", enum: ["one", "two"] },
    },
    parameters: { Timeout: { name: "timeout", in: "header" } },
    responses: { Failed: { description: "The model failed" } },
  },
}

it("groups operations by their first tag", () => {
  const groups = [...byTag(document)].map(([tag, entries]) => [
    tag,
    entries.map(({ method, path }) => `${method} ${path}`),
  ])
  expect(groups).toEqual([
    ["server", ["GET /v2"]],
    ["models", ["POST /x"]],
    ["Other", ["GET /x"]],
  ])
})

it("follows a reference with an escaped name", () => {
  expect(resolve(document, { $ref: "#/components/schemas/a~1b" })).toEqual({ type: "string", enum: ["one", "two"] })
  expect(resolve(document, { $ref: "#/components/schemas/none" })).toBeUndefined()
})

it("follows references of parameters and responses", () => {
  const operation = {
    parameters: [{ name: "model_name", in: "path" }, { $ref: "#/components/parameters/Timeout" }],
    responses: { "200": { description: "Outputs" }, "500": { $ref: "#/components/responses/Failed" } },
  }
  expect(parametersOf(document, operation).map(({ name }) => name)).toEqual(["model_name", "timeout"])
  expect(responsesOf(document, operation)).toEqual([
    ["200", { description: "Outputs" }],
    ["500", { description: "The model failed" }],
  ])
})

it("finds the names of all schemas in a schema", () => {
  const one = { $ref: "#/components/schemas/a~1b" }
  expect(namesIn({ anyOf: [one, { items: { $ref: "#/components/schemas/Tree" } }, one], const: null })).toEqual([
    "a/b",
    "Tree",
  ])
})
