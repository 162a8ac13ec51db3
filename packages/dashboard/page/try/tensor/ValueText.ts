/** Tensors as text: nested lists of JSON, or values separated by blanks, commas or semicolons. */
import { Invalid } from "../Invalid.ts"
import { kindOf, rowOf } from "./Datatype.ts"
import { complete, type Dims, fit } from "./Shape.ts"
import { type Data, isList, maxElements, numberText, ofNumbers, type Tensor, textOf } from "./Tensor.ts"

/** Reads one number of a datatype. Integers must be in its range; those of 64 bits are exact. */
export const readNumber = (text: string, datatype: string): number | bigint => {
  const trimmed = text.trim()
  const { kind, range } = rowOf(datatype)
  if (kind === "boolean") return readBoolean(trimmed)
  if (kind === "float") return readFloat(trimmed, datatype)
  if (!/^[+-]?\d+$/.test(trimmed)) throw new Invalid(`"${clipped(trimmed)}" is not an integer`)
  const value = BigInt(trimmed.replace("+", ""))
  if (range !== undefined && (value < range[0] || value > range[1])) {
    throw new Invalid(`${clipped(trimmed)} is not in the range of ${datatype}, ${range[0]} to ${range[1]}`)
  }
  return kind === "long" ? value : Number(value)
}

const readBoolean = (text: string): number => {
  if (/^(true|1)$/i.test(text)) return 1
  if (/^(false|0)$/i.test(text)) return 0
  throw new Invalid(`"${clipped(text)}" is not true or false`)
}

const readFloat = (text: string, datatype: string): number => {
  if (/^nan$/i.test(text)) return NaN
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text)
  if (infinite) return infinite[1] === "-" ? -Infinity : Infinity
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NaN
  if (Number.isNaN(value)) throw new Invalid(`"${clipped(text)}" is not a number`)
  const maximum = { FP16: 65504, BF16: 3.3895313892515355e38, FP32: 3.4028234663852886e38 }[datatype] ?? Infinity
  if (Math.abs(value) > maximum) throw new Invalid(`${clipped(text)} is not in the range of ${datatype}, ±${maximum}`)
  return value
}

const clipped = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** Reads all values of a tensor. Text that starts with `[` is JSON. Of BYTES, each other line is an element. */
export const read = (text: string, datatype: string, dims: Dims): Tensor => {
  if (text.trimStart().startsWith("[")) return readNested(text, datatype, dims)
  const isBytes = kindOf(datatype) === "bytes"
  const words = isBytes ? text.split("\n") : text.split(/[\s,;]+/).filter((word) => word !== "")
  if (isBytes && words.at(-1) === "") words.pop()
  return made(datatype, complete(words.length, dims), words)
}

/** Brackets, commas, strings and bare words. JSON.parse would round integers of 64 bits. */
const token = /\s*(?:([[\],])|"((?:[^"\\]|\\.)*)"|([^\s[\],"]+))/y

const readNested = (text: string, datatype: string, dims: Dims): Tensor => {
  const words: Array<string> = []
  /** Extent of each depth, as the first list of the depth has it. */
  const shape: Array<number> = []
  const open: Array<number> = []
  /** Lists around the values; undefined before the first. */
  let depth: number | undefined
  const end = text.trimEnd().length
  let expectsValue = true
  token.lastIndex = 0
  while (token.lastIndex < end) {
    const at = token.lastIndex
    const match = token.exec(text)
    if (match === null || (open.length === 0 && at > 0)) throw new Invalid(`not a list of JSON, at character ${at + 1}`)
    const [, mark, quoted, word] = match
    if (mark === "[" && expectsValue) {
      if (open.length === depth) throw ragged()
      count(open)
      open.push(0)
    } else if (mark === "]" && (!expectsValue || open.at(-1) === 0)) {
      const extent = open.pop() ?? 0
      shape[open.length] ??= extent
      if (shape[open.length] !== extent) throw ragged()
      expectsValue = false
    } else if (mark === "," && !expectsValue) expectsValue = true
    else if (mark === undefined && expectsValue) {
      depth ??= open.length
      if (depth !== open.length || shape.length > open.length) throw ragged()
      count(open)
      if (words.push(quoted === undefined ? (word ?? "") : unquoted(quoted)) > maxElements) throw tooMany()
      expectsValue = false
    } else throw new Invalid(`not a list of JSON, at character ${at + 1}`)
  }
  if (open.length > 0) throw new Invalid("the list of JSON does not end")
  const isFlat = shape.length === 1 && dims.length !== 1
  return made(datatype, isFlat ? complete(words.length, dims) : fit(shape, dims), words)
}

const count = (open: Array<number>): void => {
  const last = open.length - 1
  if (last >= 0) open[last] = (open[last] ?? 0) + 1
}

const ragged = () => new Invalid("lists of the same depth must have the same length")

const tooMany = () => new Invalid(`more than ${maxElements} values`)

const unquoted = (text: string): string => {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    throw new Invalid(`"${clipped(text)}" is not a string of JSON`)
  }
}

const made = (datatype: string, shape: ReadonlyArray<number>, words: ReadonlyArray<string>): Tensor => {
  if (words.length > maxElements) throw tooMany()
  if (kindOf(datatype) === "bytes") {
    const encoder = new TextEncoder()
    return { datatype, shape, data: words.map((word) => encoder.encode(word)) }
  }
  return ofNumbers(
    datatype,
    shape,
    words.map((word) => readNumber(word, datatype)),
  )
}

/** An element as text. Bytes that are not UTF-8 are undefined. */
export const elementText = (datatype: string, data: Data, index: number): string | undefined => {
  if (isList(data)) return textOf(data[index] ?? new Uint8Array())
  const value = data[index] ?? 0
  return datatype === "BOOL" ? String(value !== 0) : numberText(datatype, value)
}
