import { expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { jsonExample } from "./JsonExample.ts"

class Point extends Schema.Class<Point>("Point")({ x: Schema.Int, y: Schema.Finite }) {}

interface Tree {
  readonly children: ReadonlyArray<Tree>
}
const Tree = Schema.Struct({ children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)) })

it.each([
  ["a struct", Schema.Struct({ a: Schema.String, b: Schema.optionalKey(Schema.Int), c: Schema.Boolean })],
  ["labels", Schema.Literals(["x", "y"])],
  ["a class", Schema.Struct({ at: Point })],
  ["a date", Schema.Date],
  ["tuples and unions", Schema.Tuple([Schema.Union([Schema.Null, Schema.String]), Schema.Number])],
  ["an array that may not be empty", Schema.NonEmptyArray(Schema.Int)],
  ["a lower bound", Schema.Int.check(Schema.isGreaterThanOrEqualTo(7))],
  ["itself", Tree],
  ["examples", Schema.String.check(Schema.isPattern(/^[a-z]{3}$/)).annotate({ examples: ["abc"] })],
])("a Schema of %s takes its example", (_, schema: Schema.Codec<unknown, unknown>) => {
  const codec = Schema.toCodecJson(schema)
  expect(() => Schema.decodeUnknownSync(codec)(JSON.parse(jsonExample(codec)))).not.toThrow()
})
