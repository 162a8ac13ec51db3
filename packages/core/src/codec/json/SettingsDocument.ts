/**
 * Decodes small JSON objects of settings by name, as in the logging, trace and repository index extensions. The caller
 * validates names and values.
 */
import type { Result } from "effect"
import { type InferenceError, MalformedRequest } from "../../error/InferenceError.ts"
import { refuseDuplicate } from "./DistinctKeys.ts"
import { caught } from "./JsonMembers.ts"
import { JsonReader } from "./JsonReader.ts"

/** A setting: numbers as their digits, so that no integer loses any; `other` for what no setting of any kind is. */
export type Setting =
  | { readonly kind: "boolean"; readonly value: boolean }
  | { readonly kind: "number"; readonly value: string }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "strings"; readonly value: ReadonlyArray<string> }
  | { readonly kind: "null" }
  | { readonly kind: "other" }

/** The settings by name; none for an empty body. */
export type SettingsDocument = ReadonlyMap<string, Setting>

/** More than there are, and few enough to be read in no time. */
const maxSettings = 1024

export const read = (bytes: Uint8Array): Result.Result<SettingsDocument, InferenceError> =>
  caught(() => {
    const settings = new Map<string, Setting>()
    const reader = new JsonReader(bytes, "request")
    if (reader.peek() === -1) return settings
    if (reader.kind() !== "object") {
      // A syntax error comes first.
      reader.skip()
      reader.end()
      throw new MalformedRequest({ message: "attempt to access JSON non-object as object" })
    }
    reader.object((name) => {
      if (settings.has(name)) refuseDuplicate(reader, name)
      settings.set(name, readSetting(reader))
      if (settings.size > maxSettings) reader.fail(`more than ${maxSettings} members`)
    })
    reader.end()
    return settings
  })

/** The failure that says which type a setting must have. */
export { wrongType } from "./JsonMembers.ts"

const readSetting = (reader: JsonReader): Setting => {
  switch (reader.kind()) {
    case "boolean":
      return { kind: "boolean", value: reader.boolean() }
    case "number":
      return { kind: "number", value: reader.numberText() }
    case "string":
      return { kind: "string", value: reader.string() }
    case "null":
      reader.null()
      return { kind: "null" }
    case "array":
      return readStrings(reader)
    case "object":
      reader.skip()
      return { kind: "other" }
  }
}

const readStrings = (reader: JsonReader): Setting => {
  const value: Array<string> = []
  let isStrings = true
  reader.array(() => {
    if (isStrings && reader.kind() === "string" && value.length < maxSettings) value.push(reader.string())
    else {
      isStrings = false
      reader.skip()
    }
  })
  return isStrings ? { kind: "strings", value } : { kind: "other" }
}
