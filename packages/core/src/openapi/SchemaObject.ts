/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has it. */
export interface SchemaObject {
  readonly [keyword: string]: unknown
}
