/** Arbitrary configurations as JSON, for property tests. */
import type { DescField, DescMessage, DescOneof, JsonObject, JsonValue, ScalarType } from "@bufbuild/protobuf"
import * as fc from "fast-check"
import { ModelConfigSchema } from "@nereid/protocol/model_config"

/** Arbitrary values of scalar fields, by type. */
export type Scalars = (type: ScalarType | undefined) => fc.Arbitrary<string | number | boolean>

export const json = (scalars: Scalars): fc.Arbitrary<JsonObject> => message(ModelConfigSchema, 4, scalars)

/** Messages in it stand to this depth. */
const message = (schema: DescMessage, depth: number, scalars: Scalars): fc.Arbitrary<JsonObject> =>
  fc
    .tuple(...schema.members.map((member) => fc.option(choice(member, depth, scalars), { nil: {} })))
    .map((parts) => Object.assign({}, ...parts))

/** A field by its name; of a oneof, one of its fields. */
const choice = (member: DescField | DescOneof, depth: number, scalars: Scalars): fc.Arbitrary<JsonObject> => {
  if (member.kind === "oneof") return fc.oneof(...member.fields.map((field) => choice(field, depth, scalars)))
  if (member.message !== undefined && depth === 0) return fc.constant({})
  return value(member, depth, scalars).map((value) => ({ [member.jsonName]: value }))
}

const value = (field: DescField, depth: number, scalars: Scalars): fc.Arbitrary<JsonValue> => {
  const single = (): fc.Arbitrary<JsonValue> => {
    if (field.enum !== undefined) return fc.constantFrom(...field.enum.values.map(({ number }) => number))
    return field.message === undefined ? scalars(field.scalar) : message(field.message, depth - 1, scalars)
  }
  if (field.fieldKind === "list") return fc.array(single(), { maxLength: 3 })
  if (field.fieldKind === "map") return fc.dictionary(scalars(field.mapKey).map(String), single(), { maxKeys: 2 })
  return single()
}
