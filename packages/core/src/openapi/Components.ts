/**
 * The schemas of one part of an OpenAPI document, under names that no other part has: `<prefix>.<name>`. A prefix has
 * at least one character, and a name has no dots, so parts with different numbers of dots never share a name.
 */
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { SchemaObject } from "./SchemaObject.ts"

const start = "#/components/schemas/"

export class Components {
  readonly schemas: Record<string, SchemaObject> = {}
  readonly #prefix: string

  readonly #reserved: ReadonlySet<string>
  /** The keys of definitions, by their JSON: an input and an output often have the same. */
  readonly #included = new Map<string, ReadonlyMap<string, string>>()

  /** `prefix`: empty for the names of the document itself. `reserved`: names that no definition has. */
  constructor(prefix: string, reserved: ReadonlyArray<string> = []) {
    this.#prefix = prefix === "" ? "" : `${prefix}.`
    this.#reserved = new Set(reserved)
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

  /** Adds a schema under a name like this one, unless it is a reference, and returns the reference to it. */
  name(name: string, schema: SchemaObject): SchemaObject {
    if (typeof schema["$ref"] === "string") return schema
    const key = this.#free(name)
    this.schemas[key] = schema
    return { $ref: start + key }
  }

  /** Adds the definitions of a JSON Schema, and returns the schema with references to them. */
  include({ schema, definitions }: Pick<JsonSchema, "schema" | "definitions">): SchemaObject {
    const text = JSON.stringify(definitions)
    const known = this.#included.get(text)
    const keys = known ?? new Map(Object.keys(definitions).map((name) => [name, this.#free(name)]))
    this.#included.set(text, keys)
    const moved = (node: object): SchemaObject =>
      JSON.parse(JSON.stringify(node), (member, value) => {
        if (member !== "$ref" || typeof value !== "string") return value
        const key = keys.get(unescaped(value.replace(/^#\/\$defs\//, "")))
        return key === undefined ? value : start + key
      })
    if (known === undefined) for (const [name, key] of keys) this.schemas[key] = moved(definitions[name] ?? {})
    return moved(schema)
  }

  /** The key of a free name, which this takes. */
  #free(name: string): string {
    const safe = name.replaceAll(/[^\w-]/g, "_")
    for (let number = 1; ; number++) {
      const free = number === 1 ? safe : `${safe}_${number}`
      const key = this.#prefix + free
      if (Object.hasOwn(this.schemas, key) || this.#reserved.has(free)) continue
      this.schemas[key] = {}
      return key
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
