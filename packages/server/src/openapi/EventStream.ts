/** Bodies of server-sent events in a document: the schema is that of one event, as in `itemSchema` of OpenAPI 3.2. */
import type { SchemaObject } from "@nereid/core/internal/openapi/SchemaObject"
import type { OpenApiObject } from "./Operation.ts"

/** Events whose data has one of these schemas. */
export const content = (...schemas: ReadonlyArray<SchemaObject>): OpenApiObject => {
  const [only = {}] = schemas
  const contentSchema = schemas.length > 1 ? { anyOf: schemas } : only
  return {
    "text/event-stream": {
      schema: {
        type: "object",
        properties: { data: { type: "string", contentMediaType: "application/json", contentSchema } },
        required: ["data"],
      },
    },
  }
}

/** Events of responses, of which the last may be an error. */
export const responses = (schema: SchemaObject): OpenApiObject => ({
  "200": {
    description: "Events with one response each, as JSON. A later error is the last event",
    content: content(schema, { $ref: "#/components/schemas/Error" }),
  },
})
