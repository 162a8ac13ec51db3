import { expect, it } from "vitest"
import { Components } from "./Components.ts"

it("moves definitions to its schemas, with references to them", () => {
  const components = new Components("m.1")
  const schema = components.include({
    schema: { $ref: "#/$defs/a~1b%20c" },
    definitions: { "a/b c": { type: "array", items: { $ref: "#/$defs/a~1b%20c" } } },
  })
  expect(schema).toEqual({ $ref: "#/components/schemas/m.1.a_b_c" })
  expect(components.schemas).toEqual({ "m.1.a_b_c": { type: "array", items: schema } })
})

it("gives definitions of one name different names, also from reserved ones", () => {
  const components = new Components("m.1", ["Request"])
  const include = (name: string, title = name) =>
    components.include({ schema: { $ref: `#/$defs/${name}` }, definitions: { [name]: { title } } })
  for (const name of ["Person", "Request", "__proto__", "constructor"]) include(name)
  expect(include("Person", "another")).toEqual({ $ref: "#/components/schemas/m.1.Person_2" })
  expect(include("Person")).toEqual({ $ref: "#/components/schemas/m.1.Person" })
  components.add("Request", {})
  expect(Object.keys(components.schemas)).toEqual([
    "m.1.Person",
    "m.1.Request_2",
    "m.1.__proto__",
    "m.1.constructor",
    "m.1.Person_2",
    "m.1.Request",
  ])
})
