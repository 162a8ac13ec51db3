/**
 * Generates an OpenAPI 3.1 document of the sample routes (JsonSample.ts), for client generators and API pages. Its
 * schemas are those of the model's fields.
 */
import { Schema } from "effect"
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { JsonField } from "./JsonField.ts"
import type { JsonSample } from "./JsonSample.ts"

export interface OpenApiRoute {
  readonly path: string
  readonly sample: JsonSample
  /** Whether the model gives any number of responses, which come as server-sent events then. */
  readonly streams: boolean
}

interface Info {
  readonly title: string
  readonly version: string
}

export const document = (info: Info, routes: ReadonlyArray<OpenApiRoute>): object => {
  const schemas: Record<string, object> = { Error: error }
  const paths: Record<string, object> = {}
  for (const { path, sample, streams } of routes) paths[path] = { post: operation(sample, streams, schemas) }
  return { openapi: "3.1.0", info, paths, components: { schemas } }
}

const error = {
  type: "object",
  properties: { error: { type: "string", description: "Error message" } },
  required: ["error"],
}

const operation = (
  { definition, inputs, outputs }: JsonSample,
  streams: boolean,
  schemas: Record<string, object>,
): object => {
  const { name } = definition
  const request = objectOf(name, inputs, schemas)
  const parameters = Object.entries(definition.parameters ?? {}).filter(
    ([parameter]) => !inputs.some(({ spec }) => spec.name === parameter),
  )
  for (const [parameter, field] of parameters) {
    const encoded: Schema.Codec<unknown, unknown> = Schema.toEncoded(field as Schema.Constraint & typeof anything)
    const schema = Schema.toJsonSchemaDocument(encoded)
    request.properties[parameter] = component(`${name}.${parameter}`, schema, schemas)
  }
  const responseSchema = objectOf(name, outputs, schemas)
  const success = streams
    ? {
        description: "Stream with one event for each response",
        content: { "text/event-stream": { schema: responseSchema } },
      }
    : { description: "Response", content: { "application/json": { schema: responseSchema } } }
  return {
    operationId: name,
    summary: `Call model ${name}`,
    requestBody: { required: true, content: { "application/json": { schema: request } } },
    responses: {
      "200": success,
      default: {
        description: "Error; the header `nereid-error` contains its kind",
        content: { "application/json": { schema: { $ref: `${components}Error` } } },
      },
    },
  }
}

const anything = Schema.Unknown

interface ObjectSchema {
  readonly type: "object"
  readonly properties: Record<string, object>
  readonly required: ReadonlyArray<string>
}

const objectOf = (model: string, fields: ReadonlyArray<JsonField>, schemas: Record<string, object>): ObjectSchema => ({
  type: "object",
  properties: Object.fromEntries(
    fields.map(({ spec, jsonSchema }) => [spec.name, component(`${model}.${spec.name}`, jsonSchema, schemas)]),
  ),
  required: fields.filter(({ spec }) => !spec.optional).map(({ spec }) => spec.name),
})

const components = "#/components/schemas/"

/** The schema with its definitions among the document's, under names that no other field has. */
const component = (
  field: string,
  { schema, definitions }: Pick<JsonSchema, "schema" | "definitions">,
  schemas: Record<string, object>,
): object => {
  const key = (name: string) => `${field}.${name}`.replaceAll(/[^\w.-]/g, "_")
  const moved = (node: object): object =>
    JSON.parse(JSON.stringify(node), (member, value) =>
      member === "$ref" && typeof value === "string" && value.startsWith("#/$defs/")
        ? `${components}${key(value.slice("#/$defs/".length))}`
        : value,
    )
  for (const [name, definition] of Object.entries(definitions)) schemas[key(name)] = moved(definition)
  return moved(schema)
}
