/**
 * Parses config.pbtxt from protobuf's text format. Errors have a line and column, which the library's parser lacks.
 * ConfigCheck.ts validates the parsed configuration.
 */
import { fromText } from "@bufbuild/protobuf/txtpb"
import { Result } from "effect"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export interface ConfigTextError {
  readonly message: string
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 units, as editors count. */
  readonly column: number
}

export const parse = (text: string): Result.Result<ModelConfig, ConfigTextError> => {
  const parsed = read(text)
  return Result.mapError(parsed, (message) => ({ message, ...position(text, message) }))
}

const read = (text: string): Result.Result<ModelConfig, string> =>
  Result.try({
    try: () => fromText(ModelConfigSchema, text),
    catch: (error) => errorMessage(error),
  })

/**
 * Finds the position of a parser error by bisection. The parser reads from left to right, and stops at the word that it
 * refuses. Every prefix that includes this word is refused with the same message; a shorter one is not. Words do not
 * span lines, so the search finds the line first, then the column.
 */
const position = (text: string, message: string): Pick<ConfigTextError, "line" | "column"> => {
  const isRefusedAt = (end: number) => {
    const parsed = read(text.slice(0, end))
    return Result.isFailure(parsed) && parsed.failure === message
  }
  // If appended text changes the message, the error is about the end of the text.
  const continued = read(`${text}\n]`)
  if (Result.isFailure(continued) && continued.failure !== message) return lineAndColumn(text, text.length)
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index + 1)
  const line = first(ends.length, (index) => isRefusedAt(ends[index] ?? text.length))
  const lineStart = ends[line - 1] ?? 0
  const length = (ends[line] ?? text.length) - lineStart
  const end = lineStart + first(length, (column) => isRefusedAt(lineStart + column))
  // Begins at the start of the line, where a quote always opens a string.
  const word = text.slice(lineStart, end).match(words)?.at(-1) ?? ""
  return lineAndColumn(text, end - word.length)
}

/** Returns the first number for which a monotonic condition is true, or `last`. */
const first = (last: number, isTrue: (index: number) => boolean): number => {
  let [below, found] = [-1, last]
  while (found - below > 1) {
    const middle = (below + found) >> 1
    if (isTrue(middle)) found = middle
    else below = middle
  }
  return found
}

const words = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[\w.+-]+|[^]/g

const lineAndColumn = (text: string, offset: number) => {
  const before = text.slice(0, offset).split("\n")
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
