import { expect, it } from "vitest"
import { byTag, type Document, example, resolve } from "./Document.ts"

const document: Document = {
  info: { title: "t", version: "1" },
  paths: {
    "/v2": { get: { tags: ["server"] }, parameters: {} },
    "/x": { post: { tags: ["models"] }, get: {} },
  },
  components: {
    schemas: {
      "a/b": { type: "string", enum: ["one", "two"] },
      Tree: { type: "object", required: ["inner"], properties: { inner: { $ref: "#/components/schemas/Tree" } } },
    },
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

it.each([
  [{ type: "object", required: ["a"], properties: { a: { type: "integer", minimum: 3 }, b: {} } }, { a: 3 }],
  [{ type: "array", minItems: 2, items: { type: "number" } }, [0, 0]],
  [{ type: "array", prefixItems: [{ type: "boolean" }, { const: 5 }] }, [false, 5]],
  [{ anyOf: [{ type: ["string", "null"] }, {}] }, "text"],
  [{ $ref: "#/components/schemas/a~1b" }, "one"],
  [{ type: "string", examples: ["given"] }, "given"],
  [{}, null],
  [undefined, null],
])("makes an example of %j", (schema, expected) => {
  expect(example(document, schema)).toEqual(expected)
})

it("ends an example of a schema that contains itself", () => {
  expect(JSON.stringify(example(document, { $ref: "#/components/schemas/Tree" })).length).toBeLessThan(200)
})
