/** A program that sends the request of the form, as text to copy, and the files that it reads. */
import type { Tensor } from "../tensor/Tensor.ts"
import { isList, textOf, toBytes } from "../tensor/Tensor.ts"
import type { Input } from "../call/Attempt.ts"

export interface SnippetFile {
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

export interface Snippet {
  readonly text: string
  /** Files of large inputs, which lie beside the program. */
  readonly files: ReadonlyArray<SnippetFile>
}

/** Longer inputs are files: elements of a tensor, or bytes of a text. */
const maxInline = { elements: 1_024, bytes: 16_384 }

/** The only element of a tensor of BYTES. */
export const onlyElement = ({ data }: Tensor): Uint8Array | undefined =>
  isList(data) && data.length === 1 ? data[0] : undefined

/** The text of a short element that is UTF-8. */
export const shortText = (element: Uint8Array): string | undefined =>
  element.length <= maxInline.bytes ? textOf(element) : undefined

/** The file of an input that is too large for the text, or no text; undefined for all others. */
export const fileOf = ({ field, tensor, fileName }: Input): SnippetFile | undefined => {
  const only = onlyElement(tensor)
  if (only !== undefined) {
    const isText = fileName === undefined && shortText(only) !== undefined
    return isText ? undefined : { name: fileName ?? `${safe(field.name)}.bin`, bytes: only.slice() }
  }
  if (isList(tensor.data) || tensor.data.length <= maxInline.elements) return undefined
  return { name: `${safe(field.name)}.bin`, bytes: toBytes(tensor) }
}

const safe = (name: string): string => name.replaceAll(/[^\w.-]/g, "_").replace(/^[.-]+/, "") || "input"

export const filesOf = (inputs: ReadonlyArray<Input>): ReadonlyArray<SnippetFile> =>
  inputs.flatMap((input) => fileOf(input) ?? [])

export const base64 = (bytes: Uint8Array): string => {
  let binary = ""
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** Breaks a list of values into lines. */
export const lines = (values: ReadonlyArray<string>, indent: string, width = 110): string => {
  const short = values.join(", ")
  if (short.length <= 60) return short
  const rows: Array<string> = []
  let row = ""
  for (const value of values) {
    if (row !== "" && row.length + value.length + 2 > width) {
      rows.push(row)
      row = ""
    }
    row += row === "" ? value : `, ${value}`
  }
  return `\n${[...rows, row].map((line) => `${indent}  ${line},`).join("\n")}\n${indent}`
}
