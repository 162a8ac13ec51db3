/** TypeDoc's model of the API: names its modules as users import them, and finds exports without a docstring. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { PublicModule } from "./Reference.ts"
import { root } from "./SitePages.ts"

interface Comment {
  readonly summary: ReadonlyArray<{ readonly kind: string; readonly text: string }>
}

/** A declaration, in TypeDoc's JSON. */
export interface Reflection {
  readonly id: number
  readonly name: string
  readonly kind: number
  readonly comment?: Comment
  readonly signatures?: ReadonlyArray<Reflection>
  readonly children?: ReadonlyArray<Reflection>
  readonly inheritedFrom?: object | undefined
}

export interface Api extends Reflection {
  /** Where the declaration with this id is. */
  readonly symbolIdMap: Readonly<Record<string, { readonly packageName: string; readonly packagePath: string }>>
}

/** TypeDoc's numbers of kinds. */
const kinds = {
  project: 1,
  module: 2,
  namespace: 4,
  enumeration: 8,
  variable: 32,
  function: 64,
  class: 128,
  interface: 256,
  constructor: 512,
  type: 2_097_152,
} as const

const containers: ReadonlySet<number> = new Set([kinds.project, kinds.module, kinds.namespace])

/** The kinds that need a docstring. */
const documented: ReadonlySet<number> = new Set(
  Object.values(kinds).filter((kind) => kind !== kinds.project && kind !== kinds.constructor),
)

/**
 * Names each module as it is imported. The docstring of a module or namespace is the header of its file, which TypeDoc
 * reads only with a tag.
 */
export const named = (api: Api, modules: ReadonlyArray<PublicModule>): Api => {
  const names = new Map(modules.map(({ name, source }) => [source, name]))
  const withHeaders = (reflection: Reflection): Reflection => {
    const children = reflection.children?.map((child) => withHeaders(ownConstructor(child)))
    const source = sourceOf(api, reflection)
    const isModule = reflection.kind === kinds.module
    const hasHeader = isModule || reflection.kind === kinds.namespace
    const comment = (hasHeader && source !== undefined ? header(source) : undefined) ?? reflection.comment
    return {
      ...reflection,
      name: (isModule ? names.get(source ?? "") : undefined) ?? reflection.name,
      ...(children === undefined ? {} : { children }),
      ...(comment === undefined ? {} : { comment }),
    }
  }
  return { ...api, ...withHeaders(api), symbolIdMap: api.symbolIdMap }
}

/** A constructor without the name of its base class, which is an expression where Effect makes the class. */
const ownConstructor = (reflection: Reflection): Reflection => {
  if (reflection.kind !== kinds.constructor) return reflection
  const { signatures = [] } = reflection
  const own = { inheritedFrom: undefined }
  return { ...reflection, ...own, signatures: signatures.map((signature) => ({ ...signature, ...own })) }
}

/**
 * Exports without a docstring, such as `@nereid/core/Model each`. The header of a module is not a docstring of its
 * first export, although TypeDoc takes it as one if nothing stands between them.
 */
export const missing = (api: Api): ReadonlyArray<string> => {
  const below = (reflection: Reflection, path: ReadonlyArray<string>): ReadonlyArray<string> => {
    const isContainer = containers.has(reflection.kind)
    const header = isContainer ? textOf(reflection) : ""
    return (isContainer ? (reflection.children ?? []) : []).flatMap((child) => [
      ...(documented.has(child.kind) && ["", header].includes(textOf(child)) ? [[...path, child.name].join(" ")] : []),
      ...below(child, [...path, child.name]),
    ])
  }
  return below(api, [])
}

/** The docstring of a declaration, or of its first signature that has one. */
const textOf = ({ comment, signatures = [] }: Reflection): string => {
  const text = (comment?.summary ?? []).map(({ text }) => text).join("")
  return text.trim() === "" ? (signatures.map(textOf).find((text) => text !== "") ?? "") : text.trim()
}

const sourceOf = (api: Api, { id }: Reflection): string | undefined => {
  const symbol = api.symbolIdMap[id]
  return symbol && `${symbol.packageName.replace("@nereid/", "packages/")}/${symbol.packagePath}`
}

/** The comment that a file begins with, without its markers. */
const header = (source: string): Comment | undefined => {
  const [, text] = /^\/\*\*([^]*?)\*\//.exec(readFileSync(join(root, source), "utf8")) ?? []
  if (text === undefined) return undefined
  return { summary: [{ kind: "text", text: text.replaceAll(/^\s*\* ?/gm, "").trim() }] }
}
