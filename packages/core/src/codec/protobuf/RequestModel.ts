/**
 * Reads which model a ModelInferRequest is for, from its first bytes: an overloaded server refuses requests before it
 * reads the rest.
 */
import * as ProtobufReader from "./ProtobufReader.ts"

export interface RequestModel {
  readonly name: string
  /** Empty for the model's own choice. */
  readonly version: string
  /** The offset behind these fields. */
  readonly end: number
}

/**
 * The model of the request whose bytes from `start` to `end` have arrived, of which more may follow. Undefined if they
 * do not begin with its name, as those of nearly all clients do, or if they may be cut before its version.
 */
export const read = (bytes: Uint8Array, start: number, end: number): RequestModel | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, start, end)
  if (reader.tag() !== nameTag) return undefined
  const name = reader.name(reader.end())
  const { position } = reader
  if (reader.failed || position >= end) return undefined
  if (reader.tag() !== versionTag) return { name, version: "", end: position }
  const version = reader.name(reader.end())
  return reader.failed ? undefined : { name, version, end: reader.position }
}

/** The id of that request, which follows its model; undefined if the bytes may be cut before it. */
export const id = (bytes: Uint8Array, model: RequestModel, end: number): string | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, model.end, end)
  if (model.end >= end) return undefined
  if (reader.tag() !== idTag) return ""
  const id = reader.text(reader.end())
  return reader.failed ? undefined : id
}

const nameTag = 0x0a
const versionTag = 0x12
const idTag = 0x1a
