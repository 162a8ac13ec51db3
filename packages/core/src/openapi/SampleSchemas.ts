/**
 * The schemas of a custom route for OpenAPI: a sample (JsonSample.ts) with the declared parameters, and its response.
 * They are those of the model's fields.
 */
import { Schema } from "effect"
import type { Components } from "./Components.ts"
import type { JsonField } from "./JsonField.ts"
import type { JsonSample } from "./JsonSample.ts"
import type { RequestAndResponse } from "./ModelSchemas.ts"
import type { ParameterField } from "../model/ParameterFields.ts"
import * as ParameterSchema from "./ParameterSchema.ts"
import type { SchemaObject } from "./SchemaObject.ts"

export const make = ({ definition, inputs, outputs }: JsonSample, components: Components): RequestAndResponse => {
  const fields = new Set(inputs.map(({ spec }) => spec.name))
  const parameters = Object.entries(definition.parameters ?? {}).filter(([name]) => !fields.has(name))
  const declared = parameters.map(([name, field]) => {
    return [name, parameterSchema(field, components)] as const
  })
  const request = objectOf(inputs, components, declared)
  return { request: { ...request, additionalProperties: false }, response: objectOf(outputs, components, []) }
}

/** The schema of every value, for a Schema without a JSON Schema. */
const parameterSchema = (field: ParameterField, components: Components): SchemaObject => {
  try {
    const encoded: Schema.Codec<unknown, unknown> = Schema.toEncoded(field as Schema.Constraint & typeof anything)
    return ParameterSchema.make(Schema.toJsonSchemaDocument(encoded), components)
  } catch {
    return {}
  }
}

const anything = Schema.Unknown

const objectOf = (
  fields: ReadonlyArray<JsonField>,
  components: Components,
  more: ReadonlyArray<readonly [name: string, schema: SchemaObject]>,
): SchemaObject => ({
  type: "object",
  properties: Object.fromEntries([
    ...fields.map(({ spec, jsonSchema }) => [spec.name, components.include(jsonSchema)] as const),
    ...more,
  ]),
  required: fields.filter(({ spec }) => !spec.optional).map(({ spec }) => spec.name),
})
