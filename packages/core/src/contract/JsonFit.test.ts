import { Schema } from "effect"
import { expect, it } from "vitest"
import { type Amount, fits } from "./JsonFit.ts"
import { fromJsonSchema } from "./JsonType.ts"

const document = (schema: Schema.Constraint) => fromJsonSchema(Schema.toJsonSchemaDocument(schema))

interface Chain {
  readonly value: string
  readonly next: Chain | null
}
const chain = (value: Schema.Codec<string>): Schema.Codec<Chain> => {
  const made: Schema.Codec<Chain> = Schema.Struct({
    value,
    next: Schema.NullOr(Schema.suspend((): Schema.Codec<Chain> => made)),
  })
  return made
}

const { String: text, Finite: finite, Int: int, Null: nothing } = Schema
const pair = Schema.Tuple([text, finite])

const cases: ReadonlyArray<readonly [string, Schema.Constraint, Schema.Constraint, ReadonlyArray<Amount>]> = [
  ["the same", Schema.Struct({ a: text }), Schema.Struct({ a: text }), ["all", "some"]],
  ["an integer is a number", int, finite, ["all", "some"]],
  ["some numbers are integers", finite, int, ["some"]],
  ["no text is a number", text, finite, []],
  ["a literal is a text", Schema.Literal("a"), text, ["all", "some"]],
  ["some texts are literals", text, Schema.Literals(["a", "b"]), ["some"]],
  ["some literals are known", Schema.Literals(["a", "b"]), Schema.Literals(["b", "c"]), ["some"]],
  ["a member of a union", text, Schema.Union([finite, text]), ["all", "some"]],
  ["a union against one member", Schema.Union([finite, text]), text, ["some"]],
  ["further members are ignored", Schema.Struct({ a: text, b: text }), Schema.Struct({ a: text }), ["all", "some"]],
  ["a missing member", Schema.Struct({ a: text }), Schema.Struct({ a: text, b: text }), []],
  [
    "a member that may be missing",
    Schema.Struct({ a: Schema.optionalKey(text) }),
    Schema.Struct({ a: text }),
    ["some"],
  ],
  ["a missing optional member", Schema.Struct({}), Schema.Struct({ a: Schema.optionalKey(text) }), ["all", "some"]],
  ["lists of other elements", Schema.Array(text), Schema.Array(finite), []],
  ["a tuple is a list", Schema.Tuple([text, text]), Schema.Array(text), ["all", "some"]],
  ["some lists are tuples", Schema.Array(Schema.Union([text, finite])), pair, ["some"]],
  ["a longer tuple", Schema.Tuple([text, finite, finite]), pair, []],
  ["a shorter tuple", Schema.Tuple([text]), pair, []],
  ["records of other values", Schema.Record(text, finite), Schema.Record(text, text), []],
  ["null", nothing, Schema.NullOr(text), ["all", "some"]],
  ["anything is unknown", Schema.Unknown, text, ["all", "some"]],
  ["types that contain themselves", chain(text), chain(text), ["all", "some"]],
  ["other types that contain themselves", chain(text), chain(Schema.Literal("a")), ["some"]],
]

it.each(cases)("%s", (_name, sent, taken, expected) => {
  const amounts = (["all", "some"] as const).filter((amount) => fits(document(sent), document(taken), amount))
  expect(amounts).toEqual(expected)
})

it("compares a type that is wide and deep in bounded time", () => {
  const definitions = Object.fromEntries(
    Array.from({ length: 200 }, (_, index) => {
      const next = { $ref: `#/$defs/d${(index * 7 + 1) % 200}` }
      return [`d${index}`, { type: "object", properties: { a: next, b: { anyOf: [next, { type: "null" }] }, c: next } }]
    }),
  )
  const wide = (first: string) => fromJsonSchema({ schema: { $ref: `#/$defs/${first}` }, definitions })
  expect(fits(wide("d0"), wide("d3"), "all")).toBe(true)
})
