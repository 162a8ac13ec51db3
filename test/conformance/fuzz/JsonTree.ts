/**
 * JSON as a tree that keeps what `JSON.parse` loses: members that stand twice, the text of numbers, NaN. A second
 * parser of the protocol's JSON, for the tests alone: recursive, slow, and strict.
 */
import { isUtf8 } from "node:buffer"

export type JsonTree =
  | { readonly kind: "object"; readonly members: ReadonlyArray<readonly [string, JsonTree]> }
  | { readonly kind: "array"; readonly elements: ReadonlyArray<JsonTree> }
  /** Bytes of UTF-8 as the characters of Latin-1. */
  | { readonly kind: "string"; readonly bytes: string }
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "word"; readonly text: "true" | "false" | "null" }

/** @throws SyntaxError where the bytes are no JSON */
export const parse = (bytes: Uint8Array): JsonTree => {
  const text = Buffer.from(bytes).toString("latin1")
  let position = 0
  const fail = (): never => {
    throw new SyntaxError(`No JSON at ${position}`)
  }
  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = position
    const found = pattern.exec(text) ?? undefined
    if (found !== undefined) position += found[0].length
    return found
  }
  const space = () => void match(/[ \t\r\n]*/y)
  const sign = (character: string): boolean => {
    space()
    if (text[position] !== character) return false
    position += 1
    return true
  }
  const list = <A>(end: string, element: () => A): ReadonlyArray<A> => {
    const found: Array<A> = []
    if (sign(end)) return found
    do found.push(element())
    while (sign(","))
    if (!sign(end)) fail()
    return found
  }
  const string = (): string => {
    space()
    // oxlint-disable-next-line no-control-regex -- JSON forbids control characters in strings
    const found = match(/"((?:[^"\\\u0000-\u001f]|\\[^])*)"/y) ?? fail()
    if (!isUtf8(Buffer.from(found[1] ?? "", "latin1"))) fail()
    return (found[1] ?? "").replaceAll(/\\(?:u([0-9a-fA-F]{4})(?:\\u([0-9a-fA-F]{4}))?|([^]))/g, unescape)
  }
  const unescape = (
    _: string,
    high: string | undefined,
    low: string | undefined,
    single: string | undefined,
  ): string => {
    if (high === undefined) return escapes.get(single ?? "") ?? fail()
    const point = Number.parseInt(high, 16)
    const surrogate = point >= 0xd800 && point <= 0xdfff
    const characters = String.fromCharCode(point, ...(low === undefined ? [] : [Number.parseInt(low, 16)]))
    if ((surrogate || low !== undefined) && !characters.isWellFormed()) fail()
    return Buffer.from(characters).toString("latin1")
  }
  const value = (): JsonTree => {
    if (sign("{")) {
      return {
        kind: "object",
        members: list("}", () => {
          const key = Buffer.from(string(), "latin1").toString()
          if (!sign(":")) fail()
          return [key, value()]
        }),
      }
    }
    if (sign("[")) return { kind: "array", elements: list("]", value) }
    if (text[position] === '"') return { kind: "string", bytes: string() }
    const [word] = match(/true|false|null/y) ?? []
    if (word === "true" || word === "false" || word === "null") return { kind: "word", text: word }
    const [number] = match(/NaN|-?Inf(?:inity)?|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y) ?? fail()
    return { kind: "number", text: number ?? "" }
  }
  const whole = value()
  space()
  return position === text.length ? whole : fail()
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
])

export const print = (tree: JsonTree): Uint8Array => Buffer.from(textOf(tree), "latin1")

const textOf = (tree: JsonTree): string => {
  switch (tree.kind) {
    case "object":
      return `{${tree.members.map(([key, value]) => `${quoted(Buffer.from(key).toString("latin1"))}:${textOf(value)}`).join()}}`
    case "array":
      return `[${tree.elements.map(textOf).join()}]`
    case "string":
      return quoted(tree.bytes)
    default:
      return tree.text
  }
}

/** Bytes above ASCII stay as they are. */
const quoted = (bytes: string): string =>
  // oxlint-disable-next-line no-control-regex -- JSON forbids control characters in strings
  `"${bytes.replaceAll(/["\\\u0000-\u001f]/g, (character) => JSON.stringify(character).slice(1, -1))}"`
