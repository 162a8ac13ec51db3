/**
 * An example JSON text that a Schema accepts, for documentation. It is generated from the JSON Schema, so checks in
 * code may reject it; if so, annotate the Schema with `examples`.
 */
import { Schema } from "effect"

interface Node {
  readonly type?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly const?: unknown
  readonly examples?: ReadonlyArray<unknown>
  readonly anyOf?: ReadonlyArray<Node>
  readonly oneOf?: ReadonlyArray<Node>
  readonly allOf?: ReadonlyArray<Node>
  readonly $ref?: string
  readonly properties?: { readonly [name: string]: Node }
  readonly required?: ReadonlyArray<string>
  readonly prefixItems?: ReadonlyArray<Node>
  readonly items?: Node
  readonly minItems?: number
  readonly minimum?: number
}

/** Deeper than any example needs: a Schema that contains itself ends here. */
const deepest = 16

export const jsonExample = (schema: Schema.Constraint): string => {
  const { schema: node, definitions } = Schema.toJsonSchemaDocument(schema)
  return JSON.stringify(example(node, definitions, 0)) ?? "null"
}

const example = (node: Node, definitions: { readonly [name: string]: Node }, depth: number): unknown => {
  if (depth > deepest) return null
  const inner = (other: Node) => example(other, definitions, depth + 1)
  if (node.examples?.length) return node.examples[0]
  if ("const" in node) return node.const
  if (node.enum?.length) return node.enum[0]
  const definition = definitions[node.$ref?.split("/").at(-1) ?? ""]
  if (definition !== undefined) return inner(definition)
  const [branch] = node.anyOf ?? node.oneOf ?? node.allOf ?? []
  if (branch !== undefined && node.type === undefined) return inner(branch)
  switch (node.type) {
    case "object":
      return Object.fromEntries((node.required ?? []).map((name) => [name, inner(node.properties?.[name] ?? {})]))
    case "array": {
      const rest = Math.max(0, (node.minItems ?? 0) - (node.prefixItems?.length ?? 0))
      return [...(node.prefixItems ?? []), ...Array.from({ length: rest }, () => node.items ?? {})].map(inner)
    }
    case "number":
    case "integer":
      return Math.max(1, node.minimum ?? 1)
    case "boolean":
      return true
    case "string":
      // Strings include dates, which JSON Schema does not distinguish.
      return "2026-01-01"
    default:
      return null
  }
}
