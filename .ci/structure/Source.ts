/** Metrics of one source file: its length, imports, exports, and the length of its functions. */
import { readFileSync } from "node:fs"
import { parseAst } from "rolldown/parseAst"

export interface FunctionLength {
  /** The name of the function, or of the declaration, property or method that it stands in. */
  readonly name: string
  readonly file: string
  /** The line of the file in which it begins. */
  readonly line: number
  readonly lines: number
}

export interface Source {
  readonly file: string
  readonly lines: number
  /** Specifiers of its imports and re-exports, types included. */
  readonly imports: ReadonlyArray<string>
  /** The names that it exports, without those of `stars`. */
  readonly names: ReadonlyArray<string>
  /** Specifiers of its `export * from`. */
  readonly stars: ReadonlyArray<string>
  readonly functions: ReadonlyArray<FunctionLength>
  /** Occurrences of `error instanceof Error ?`, with any name for the error. */
  readonly errorChecks: number
}

type Statement = ReturnType<typeof parseAst>["body"][number]

/** Any node of the syntax tree. */
interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

export const read = (file: string): Source => {
  const text = readFileSync(file, "utf8")
  const { body } = parseAst(text, { lang: file.endsWith("ts") ? "ts" : "js" })
  const nodes = body.flatMap((statement) => (isNode(statement) ? [statement] : []))
  return {
    file,
    lines: lineCount(text.trimEnd()),
    imports: nodes.flatMap(specifiers),
    names: [...new Set(body.flatMap(exportedNames))],
    stars: body.flatMap((statement) =>
      statement.type === "ExportAllDeclaration" && statement.exported === null ? [statement.source.value] : [],
    ),
    functions: nodes.flatMap((node) => functions(file, text, node, "")),
    errorChecks: [...text.matchAll(/\b\w+ instanceof Error\s*\?/g)].length,
  }
}

const lineCount = (text: string): number => text.split("\n").length

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

const children = (node: Node): ReadonlyArray<Node> => Object.values(node).flat().filter(isNode)

/** Static and dynamic imports, re-exports, and types written as `import("…")`. */
const specifiers = (node: Node): ReadonlyArray<string> => {
  const { source, argument } = node
  const isImport = /^(Import(Declaration|Expression)|Export(All|Named)Declaration|TSImportType)$/.test(node.type)
  const specifier = [source, argument].find((value) => isNode(value) && value.type === "Literal")
  const own = isImport && isNode(specifier) && typeof specifier["value"] === "string" ? [specifier["value"]] : []
  return [...own, ...children(node).flatMap(specifiers)]
}

const exportedNames = (statement: Statement): ReadonlyArray<string> => {
  if (statement.type === "ExportDefaultDeclaration") return ["default"]
  if (statement.type === "ExportAllDeclaration") return statement.exported === null ? [] : [nameOf(statement.exported)]
  if (statement.type !== "ExportNamedDeclaration") return []
  const { declaration, specifiers } = statement
  const declared =
    declaration?.type === "VariableDeclaration" ? declaration.declarations.map(({ id }) => id) : [declaration]
  return [...declared.map(nameOf).filter((name) => name !== ""), ...specifiers.map(({ exported }) => nameOf(exported))]
}

const functions = (file: string, text: string, node: Node, name: string): ReadonlyArray<FunctionLength> => {
  const nearest = nameOf(node) || name
  const inner = children(node).flatMap((child) => functions(file, text, child, nearest))
  if (!/^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)) return inner
  const line = lineCount(text.slice(0, node.start))
  return [{ name: nearest, file, line, lines: lineCount(text.slice(node.start, node.end)) }, ...inner]
}

/** The name of an identifier or literal, or of what declares it; empty for other nodes. */
const nameOf = (node: unknown): string => {
  if (!isNode(node)) return ""
  const { type, name, value, id, key } = node
  if (type === "Identifier" && typeof name === "string") return name
  if (type === "PrivateIdentifier" && typeof name === "string") return `#${name}`
  if (type === "Literal" && typeof value === "string") return value
  return nameOf(id) || nameOf(key)
}
