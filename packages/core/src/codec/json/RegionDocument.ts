/**
 * Decodes the JSON body that registers a system shared memory region over HTTP. The name is in the path; the server
 * checks whether the region exists.
 */
import type { Result } from "effect"
import type { InferenceError } from "../../error/InferenceError.ts"
import { caught, members, missing, readString, readUnsigned } from "./JsonMembers.ts"
import { JsonReader } from "./JsonReader.ts"

export interface RegionDocument {
  /** Of the shared memory object, as `shm_open` takes it. */
  readonly key: string
  /** Offset in the object, in bytes. Default 0. */
  readonly offset: number
  readonly byteSize: number
}

export const read = (bytes: Uint8Array): Result.Result<RegionDocument, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "request")
    let key: string | undefined
    let byteSize: number | undefined
    let offset = 0
    members(reader, ["key", "offset", "byte_size"], (member) => {
      if (member === "key") key = readString(reader, member)
      else if (member === "offset") offset = readUnsigned(reader, member)
      else byteSize = readUnsigned(reader, member)
    })
    reader.end()
    return { key: key ?? missing("key"), offset, byteSize: byteSize ?? missing("byte_size") }
  })
