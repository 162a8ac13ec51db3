/**
 * Schemas of JSON values as code of a contract file. Definitions become constants above the models, declared once for
 * all fields that have the same ones.
 */
import type { ClassNames } from "./ClassName.ts"
import type { JsonDocument, JsonMember, JsonType } from "./JsonType.ts"
import { call, type Expression, key, print, quoted, width, word } from "./SourceText.ts"

const simple = {
  unknown: ["Schema.Json", "Schema.Json"],
  null: ["Schema.Null", "null"],
  boolean: ["Schema.Boolean", "boolean"],
  string: ["Schema.String", "string"],
  bigint: ["Schema.BigInt", "bigint"],
  number: ["Schema.Number", "number"],
  finite: ["Schema.Finite", "number"],
  integer: ["Schema.Int", "number"],
} as const

const checks = {
  minimum: "Schema.isGreaterThanOrEqualTo",
  maximum: "Schema.isLessThanOrEqualTo",
  exclusiveMinimum: "Schema.isGreaterThan",
  exclusiveMaximum: "Schema.isLessThan",
} as const

/** Names of the constants of a document, by its definitions. */
type Names = ReadonlyMap<string, string>

export class JsonSource {
  /** Declarations, each before those that use it. */
  readonly statements: Array<string> = []
  readonly #names: ClassNames
  readonly #known = new Map<string, Names>()

  constructor(names: ClassNames) {
    this.#names = names
  }

  /** The Schema of a document. */
  schema(document: JsonDocument): Expression {
    return schema(document.type, this.#declare(document), noNames)
  }

  /** The fields of an object, without the omitted one; none for a document of another type. */
  fields({ type, definitions }: JsonDocument, omitted: string): Extract<Expression, { kind: "object" }> {
    const object = type.kind === "reference" ? definitions.get(type.name) : type
    const names = this.#declare({ type: object ?? type, definitions })
    const members = object?.kind === "object" ? object.members.filter(({ name }) => name !== omitted) : []
    return struct(members, names, noNames)
  }

  #declare({ type, definitions }: JsonDocument): Names {
    const used = reachable(type, definitions)
    const text = JSON.stringify(used)
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const names = new Map(used.map(([name]) => [name, this.#names.unique(name.replace(/Encoded$/, ""), "Json")]))
    this.#known.set(text, names)
    const ordered = inOrder(used)
    const isRecursive = ordered.some(({ open }) => open.size > 0)
    for (const { name, type, open } of ordered) {
      const identifier = names.get(name) ?? ""
      const shown = isRecursive ? `const ${identifier}: Schema.Codec<${identifier}> = ` : `const ${identifier} = `
      if (isRecursive) this.statements.push(typeDeclaration(identifier, type, names))
      this.statements.push(print(schema(type, names, open), shown, "", 0))
    }
    return names
  }
}

const noNames: ReadonlySet<string> = new Set()

type Definitions = ReadonlyArray<readonly [name: string, type: JsonType]>

/** The definitions that a type uses, directly or not. */
const reachable = (type: JsonType, definitions: JsonDocument["definitions"]): Definitions => {
  const found = new Map<string, JsonType>()
  const pending = [...references(type)]
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const definition = definitions.get(name)
    if (definition === undefined || found.has(name)) continue
    found.set(name, definition)
    pending.push(...references(definition))
  }
  return [...found].toSorted(([one], [other]) => (one < other ? -1 : 1))
}

const references = (type: JsonType): ReadonlyArray<string> =>
  type.kind === "reference" ? [type.name] : inner(type).flatMap(references)

const inner = (type: JsonType): ReadonlyArray<JsonType> => {
  switch (type.kind) {
    case "array":
      return [type.items]
    case "tuple":
      return [...type.elements.map((element) => element.type), ...(type.rest === undefined ? [] : [type.rest])]
    case "object":
      return [...type.members.map((member) => member.type), ...(type.rest === undefined ? [] : [type.rest])]
    case "union":
      return type.members
    default:
      return []
  }
}

interface Ordered {
  readonly name: string
  readonly type: JsonType
  /** Definitions that it uses and that are declared only later. */
  readonly open: ReadonlySet<string>
}

/** Definitions behind those that they use, as far as they do not use each other. */
const inOrder = (definitions: Definitions): ReadonlyArray<Ordered> => {
  const types = new Map(definitions)
  const begun = new Set<string>()
  const done = new Set<string>()
  const ordered: Array<Ordered> = []
  const visit = (name: string, type: JsonType): void => {
    if (begun.has(name)) return
    begun.add(name)
    const used = references(type)
    for (const other of used) {
      const definition = types.get(other)
      if (definition !== undefined) visit(other, definition)
    }
    ordered.push({ name, type, open: new Set(used.filter((other) => !done.has(other))) })
    done.add(name)
  }
  for (const [name, type] of definitions) visit(name, type)
  return ordered
}

const schema = (type: JsonType, names: Names, open: ReadonlySet<string>): Expression => {
  const of = (other: JsonType) => schema(other, names, open)
  switch (type.kind) {
    case "literals": {
      const values = type.values.map((value) => word(typeof value === "string" ? quoted(value) : String(value)))
      const [only] = values
      return only !== undefined && values.length === 1
        ? call("Schema.Literal", only)
        : call("Schema.Literals", { kind: "list", elements: values })
    }
    case "array":
      return call("Schema.Array", of(type.items))
    case "tuple": {
      const elements = type.elements.map(({ type, optional }) => optionalKey(of(type), optional))
      const tuple = call("Schema.Tuple", { kind: "list", elements })
      if (type.rest === undefined) return tuple
      return call("Schema.TupleWithRest", tuple, { kind: "list", elements: [of(type.rest)] })
    }
    case "object": {
      const { members, rest } = type
      const record = rest && call("Schema.Record", word("Schema.String"), of(rest))
      if (record !== undefined && members.length === 0) return record
      const fixed = call("Schema.Struct", struct(members, names, open))
      return record === undefined ? fixed : call("Schema.StructWithRest", fixed, { kind: "list", elements: [record] })
    }
    case "union":
      return call("Schema.Union", { kind: "list", elements: type.members.map(of) })
    case "reference": {
      const name = names.get(type.name)
      if (name === undefined) return word("Schema.Json")
      return word(open.has(type.name) ? `Schema.suspend((): Schema.Codec<${name}> => ${name})` : name)
    }
    case "number":
    case "finite":
    case "integer": {
      const [name] = simple[type.kind]
      const bounds = type.bounds.map(({ keyword, limit }) => call(checks[keyword], word(String(limit))))
      return bounds.length === 0 ? word(name) : call(`${name}.check`, ...bounds)
    }
    default:
      return word(simple[type.kind][0])
  }
}

const struct = (members: ReadonlyArray<JsonMember>, names: Names, open: ReadonlySet<string>) => ({
  kind: "object" as const,
  members: members.map(({ name, type, optional }) => [name, optionalKey(schema(type, names, open), optional)] as const),
})

const optionalKey = (expression: Expression, optional: boolean): Expression =>
  optional ? call("Schema.optionalKey", expression) : expression

/** The type of a definition that contains itself, which the compiler cannot infer. */
const typeDeclaration = (identifier: string, type: JsonType, names: Names): string => {
  const line = `type ${identifier} = ${typeOf(type, names)}`
  if (line.length <= width || type.kind !== "object" || type.rest !== undefined) return line
  return [`type ${identifier} = {`, ...type.members.map((one) => `  ${memberType(one, names)}`), "}"].join("\n")
}

/** The type of a document for messages, at most about this many characters of it. */
export const typeText = ({ type, definitions }: JsonDocument, length = 100): string => {
  const names = new Map([...definitions.keys()].map((name) => [name, name.replaceAll(/[^\w.-]/g, "_")]))
  const target = type.kind === "reference" ? (definitions.get(type.name) ?? type) : type
  const text = typeOf(target, names, true).replaceAll("readonly ", "")
  return text.length > length ? `${text.slice(0, length)}…` : text
}

/** `shows` integers, which code does not distinguish from other numbers. */
const typeOf = (type: JsonType, names: Names, shows = false): string => {
  const of = (other: JsonType) => typeOf(other, names, shows)
  switch (type.kind) {
    case "literals":
      return type.values.map((value) => (typeof value === "string" ? quoted(value) : String(value))).join(" | ")
    case "array":
      return `ReadonlyArray<${of(type.items)}>`
    case "tuple": {
      const elements = type.elements.map(({ type, optional }) => (optional ? `(${of(type)})?` : of(type)))
      const rest = type.rest === undefined ? [] : [`...Array<${of(type.rest)}>`]
      return `readonly [${[...elements, ...rest].join(", ")}]`
    }
    case "object": {
      const { members, rest } = type
      const index = rest && `{ readonly [name: string]: ${of(rest)} }`
      if (index !== undefined && members.length === 0) return index
      const fixed =
        members.length === 0 ? "{}" : `{ ${members.map((one) => memberType(one, names, shows)).join("; ")} }`
      return index === undefined ? fixed : `${fixed} & ${index}`
    }
    case "union":
      return type.members.map((member) => (member.kind === "object" ? `(${of(member)})` : of(member))).join(" | ")
    case "reference":
      return names.get(type.name) ?? "Schema.Json"
    default:
      return shows && type.kind === "integer" ? type.kind : simple[type.kind][1]
  }
}

const memberType = ({ name, type, optional }: JsonMember, names: Names, shows = false): string =>
  `readonly ${key(name)}${optional ? "?" : ""}: ${typeOf(type, names, shows)}`
