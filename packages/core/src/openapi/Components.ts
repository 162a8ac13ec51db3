/**
 * The schemas of one part of an OpenAPI document, under names that no other part has: `<prefix>.<name>`. A prefix has at
 * least one character, and a name has no dots, so parts with different numbers of dots never share a name.
 */
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { SchemaObject } from "./SchemaObject.ts"

const start = "#/components/schemas/"

export class Components {
  readonly schemas: Record<string, SchemaObject> = {}
  readonly #prefix: string

  /** Empty for the names of the document itself. */
  constructor(prefix: string) {
    this.#prefix = prefix === "" ? "" : `${prefix}.`
  }

  /** Adds a schema, and returns the reference to it. */
  add(name: string, schema: SchemaObject): SchemaObject {
    const key = this.#prefix + name
    this.schemas[key] = schema
    return { $ref: start + key }
  }

  reference(name: string): SchemaObject {
    return { $ref: start + this.#prefix + name }
  }

  has(name: string): boolean {
    return Object.hasOwn(this.schemas, this.#prefix + name)
  }

  /** Adds the definitions of a JSON Schema, and returns the schema with references to them. */
  include({ schema, definitions }: Pick<JsonSchema, "schema" | "definitions">): SchemaObject {
    const keys = new Map<string, string>()
    for (const name of Object.keys(definitions)) keys.set(name, this.#free(name, definitions[name]))
    const moved = (node: object): SchemaObject =>
      JSON.parse(JSON.stringify(node), (member, value) => {
        if (member !== "$ref" || typeof value !== "string") return value
        const key = keys.get(unescaped(value.replace(/^#\/\$defs\//, "")))
        return key === undefined ? value : start + key
      })
    for (const [name, key] of keys) this.schemas[key] = moved(definitions[name] ?? {})
    return moved(schema)
  }

  /** A free name for a definition; that of an equal one, if there is one. */
  #free(name: string, definition: object | undefined): string {
    const safe = name.replaceAll(/[^\w-]/g, "_")
    for (let number = 1; ; number++) {
      const key = this.#prefix + (number === 1 ? safe : `${safe}_${number}`)
      if (!Object.hasOwn(this.schemas, key)) {
        this.schemas[key] = definition === undefined ? {} : { ...definition }
        return key
      }
    }
  }
}

/** The name in a JSON pointer, which is percent-encoded in a reference. */
const unescaped = (pointer: string): string => {
  const name = pointer.replaceAll("~1", "/").replaceAll("~0", "~")
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
