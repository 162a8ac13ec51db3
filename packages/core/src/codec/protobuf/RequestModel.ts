/**
 * Reads which model a ModelInferRequest is for, from its first bytes: an overloaded server refuses requests before it
 * reads the rest.
 */
import * as ProtobufReader from "./ProtobufReader.ts"

export interface RequestModel {
  readonly name: string
  /** Empty for the model's own choice. */
  readonly version: string
}

/**
 * The model of the request whose bytes from `start` to `end` have arrived, of which more may follow. Undefined if they
 * do not begin with its name, as those of nearly all clients do, or if they may be cut before its version.
 */
export const read = (bytes: Uint8Array, start: number, end: number): RequestModel | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, start, end)
  if (reader.tag() !== nameTag) return undefined
  const name = reader.name(reader.end())
  if (reader.failed || reader.position >= end) return undefined
  if (reader.tag() !== versionTag) return { name, version: "" }
  const version = reader.name(reader.end())
  return reader.failed ? undefined : { name, version }
}

const nameTag = 0x0a
const versionTag = 0x12
