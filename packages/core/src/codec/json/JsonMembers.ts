/**
 * Shared reading of the protocol's JSON documents: members of objects by name, elements of arrays, and errors that name
 * a field. Built on JsonReader.ts, which handles plain JSON; the decoders define the documents.
 */
import { Result } from "effect"
import { type InferenceError, isInferenceError, MalformedRequest } from "../../error/InferenceError.ts"
import { DistinctKeys, refuseDuplicate } from "./DistinctKeys.ts"
import type { JsonReader } from "./JsonReader.ts"

/**
 * Reads the members of the object at this position, ignoring other keys, and refuses duplicate keys. A value that is
 * not an object has no members, and so lacks the first key.
 */
export const members = (
  reader: JsonReader,
  keys: readonly [string, ...Array<string>],
  member: (key: string) => void,
): void => {
  if (reader.kind() !== "object") {
    reader.skip()
    return missing(keys[0])
  }
  /** A bit for each of the keys. */
  let found = 0
  let unknown: DistinctKeys | undefined
  reader.object((key) => {
    const index = keys.indexOf(key)
    if (index < 0) {
      unknown ??= new DistinctKeys()
      unknown.add(reader, key)
      return reader.skip()
    }
    if ((found & (1 << index)) !== 0) refuseDuplicate(reader, key)
    found |= 1 << index
    member(key)
  })
}

/** No model has as many inputs, outputs, parameters or dims, and a body could name millions. */
export const maxElements = 4096

export const elements = (reader: JsonReader, field: string, element: () => void): void => {
  if (reader.kind() !== "array") wrongKind(reader, field, "array")
  let count = 0
  reader.array(() => {
    if (++count > maxElements) throw tooMany(field)
    element()
  })
}

export const tooMany = (field: string) =>
  new MalformedRequest({
    message: `Unable to parse '${field}': more than ${maxElements} elements, the maximum allowed`,
  })

export const readString = (reader: JsonReader, field: string): string => {
  if (reader.kind() !== "string") wrongKind(reader, field, "string")
  return reader.string()
}

/** A whole number that is not negative and has at most 64 bits; beyond 2^53 the nearest double. */
export const readUnsigned = (reader: JsonReader, field: string): number => {
  if (reader.kind() !== "number") wrongKind(reader, field, "unsigned-integer")
  const text = reader.numberText()
  // Only 20 digits may be too many.
  if (/^[0-9]{1,20}$/.test(text) && (text.length < 20 || BigInt(text) < 2n ** 64n)) return Number(text)
  throw new MalformedRequest({ message: `${cannot(field, "unsigned-integer")} (${text.slice(0, 40)})` })
}

const cannot = (field: string, expected: string) =>
  `Unable to parse '${field}': attempt to access JSON non-${expected} as ${expected}`

export const wrongKind = (reader: JsonReader, field: string, expected: string): never => {
  // A syntax error comes first.
  reader.skip()
  throw wrongType(field, expected)
}

export const wrongType = (field: string, expected: string) => new MalformedRequest({ message: cannot(field, expected) })

export const missing = (field: string): never => {
  const message = `Unable to parse '${field}': attempt to access non-existing object member '${field}'`
  throw new MalformedRequest({ message })
}

export const caught = <A>(read: () => A): Result.Result<A, InferenceError> => {
  try {
    return Result.succeed(read())
  } catch (error) {
    if (isInferenceError(error)) return Result.fail(error)
    throw error
  }
}
