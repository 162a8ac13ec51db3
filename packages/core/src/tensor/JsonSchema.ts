/** A JSON Schema, of draft 2020-12; its references are to `definitions`. */
export interface JsonSchema {
  readonly schema: object
  readonly definitions: { readonly [name: string]: object }
}
