/**
 * Sequences as JSON, for their export and import over HTTP. A state has its bytes in base64, little endian; elements of
 * BYTES are preceded by their length, 4 bytes.
 */
import type { Result } from "effect"
import { type InferenceError, InvalidRequest } from "../../error/InferenceError.ts"
import * as IdleLimit from "../../request/IdleLimit.ts"
import type { SequenceExport, SequenceSnapshot } from "../../request/SequenceExport.ts"
import type { SequenceId } from "../../request/SequencePosition.ts"
import * as DataType from "../../tensor/DataType.ts"
import { TypedTensor } from "../../tensor/TypedTensor.ts"
import { sequenceIdProblem } from "../../wire/KnownParameters.ts"
import { caught, elements, members, missing, readString, readUnsigned } from "./JsonMembers.ts"
import { JsonReader } from "./JsonReader.ts"

/** Maximum sequences of a document. */
export { maxElements as maxSequences } from "./JsonMembers.ts"

/** The id of a sequence: digits and UINT64, or a string and BYTES. */
export interface IdDocument {
  readonly id: string
  readonly datatype: "UINT64" | "BYTES"
}

export const idDocument = (id: SequenceId): IdDocument =>
  typeof id === "string" ? { id, datatype: "BYTES" } : { id: String(id), datatype: "UINT64" }

/** The document of an export, for JSON.stringify. */
export const document = ({ sequences, ...head }: SequenceExport) => ({
  ...head,
  sequences: sequences.map(({ id, ageNanos, maxIdleNanos, tensors }) => ({
    ...idDocument(id),
    age_ms: Math.round(ageNanos / 1e6),
    ...(maxIdleNanos !== undefined && { max_idle_microseconds: IdleLimit.microsOf(maxIdleNanos) }),
    ...(tensors && {
      state: tensors.map(({ datatype, shape, bytes }) => ({ datatype, shape, data: base64(bytes) })),
    }),
  })),
})

const base64 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("base64")

/** Reads exported sequences. */
export const read = (bytes: Uint8Array): Result.Result<SequenceExport, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "request")
    let format: number | undefined
    let model: string | undefined
    let states: string | undefined
    let sequences: Array<SequenceSnapshot> | undefined
    members(reader, ["format", "model", "states", "sequences"], (member) => {
      if (member === "format") format = readUnsigned(reader, member)
      else if (member === "model") model = readString(reader, member)
      else if (member === "states") states = readString(reader, member)
      else {
        const read: Array<SequenceSnapshot> = []
        elements(reader, member, () => read.push(readSequence(reader)))
        sequences = read
      }
    })
    reader.end()
    return {
      format: format ?? missing("format"),
      model: model ?? missing("model"),
      states: states ?? missing("states"),
      sequences: sequences ?? missing("sequences"),
    }
  })

/** Which sequences to export. */
export interface Selection {
  /** Undefined for all. */
  readonly ids: ReadonlyArray<SequenceId> | undefined
  /** Maximum time for running requests to end, in milliseconds. */
  readonly waitMillis: number | undefined
}

/** Reads the selection of an export; an empty body selects all sequences. */
export const readSelection = (bytes: Uint8Array): Result.Result<Selection, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "request")
    let ids: Array<SequenceId> | undefined
    let waitMillis: number | undefined
    if (reader.peek() === -1) return { ids, waitMillis }
    members(reader, ["ids", "wait_ms"], (member) => {
      if (member === "wait_ms") {
        waitMillis = readUnsigned(reader, member)
        return
      }
      const read: Array<SequenceId> = []
      elements(reader, member, () => {
        const id = new IdReader(reader)
        members(reader, ["id", "datatype"], (field) => id.read(field))
        read.push(id.value)
      })
      ids = read
    })
    reader.end()
    return { ids, waitMillis }
  })

/** A sequence that an import has refused. */
export interface RefusedSequence extends IdDocument {
  readonly error: string
}

/** Reads the refused sequences in the response of an import. */
export const readRefused = (bytes: Uint8Array): Result.Result<ReadonlyArray<RefusedSequence>, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "response")
    let refused: Array<RefusedSequence> | undefined
    members(reader, ["refused"], () => {
      const read: Array<RefusedSequence> = []
      elements(reader, "refused", () => {
        const id = new IdReader(reader)
        let error = ""
        members(reader, ["id", "datatype", "error"], (member) => {
          if (member === "error") error = readString(reader, member)
          else id.read(member)
        })
        read.push({ ...idDocument(id.value), error })
      })
      refused = read
    })
    return refused ?? missing("refused")
  })

const readSequence = (reader: JsonReader): SequenceSnapshot => {
  const id = new IdReader(reader)
  let ageNanos = 0
  let maxIdleNanos: number | undefined
  let tensors: Array<TypedTensor> | undefined
  members(reader, ["id", "datatype", "age_ms", "max_idle_microseconds", "state"], (member) => {
    if (member === "age_ms") ageNanos = readUnsigned(reader, member) * 1e6
    else if (member === "max_idle_microseconds") maxIdleNanos = IdleLimit.nanosOf(readUnsigned(reader, member))
    else if (member !== "state") id.read(member)
    else {
      const read: Array<TypedTensor> = []
      elements(reader, member, () => read.push(readTensor(reader)))
      tensors = read
    }
  })
  return { id: id.value, ageNanos, maxIdleNanos, tensors }
}

class IdReader {
  readonly #reader: JsonReader
  #id: string | undefined
  #datatype = "BYTES"

  constructor(reader: JsonReader) {
    this.#reader = reader
  }

  /** Reads a member of the id. */
  read(member: string): void {
    if (member === "id") this.#id = readString(this.#reader, member)
    else this.#datatype = readString(this.#reader, member)
  }

  get value(): SequenceId {
    const id = this.#id ?? missing("id")
    if (this.#datatype === "BYTES" && id !== "") {
      const problem = sequenceIdProblem(id)
      if (problem !== undefined) throw problem
      return id
    }
    if (this.#datatype === "UINT64" && /^[1-9][0-9]{0,19}$/.test(id) && BigInt(id) < 2n ** 64n) return BigInt(id)
    const given = `${JSON.stringify(id.slice(0, 40))} of datatype '${this.#datatype.slice(0, 40)}'`
    const expected = "a string of datatype 'BYTES', or the digits of a number of datatype 'UINT64'"
    throw new InvalidRequest({ message: `the id of a sequence must be ${expected}, got ${given}` })
  }
}

const readTensor = (reader: JsonReader): TypedTensor => {
  let datatype: string | undefined
  let data: string | undefined
  const shape: Array<number> = []
  members(reader, ["datatype", "shape", "data"], (member) => {
    if (member === "datatype") datatype = readString(reader, member)
    else if (member === "data") data = readString(reader, member)
    else elements(reader, member, () => shape.push(readUnsigned(reader, member)))
  })
  const type = datatype ?? missing("datatype")
  if (!DataType.isDataType(type)) {
    throw new InvalidRequest({ message: `a state of a sequence has the unknown datatype '${type.slice(0, 40)}'` })
  }
  return new TypedTensor(type, shape, Buffer.from(data ?? missing("data"), "base64"))
}
