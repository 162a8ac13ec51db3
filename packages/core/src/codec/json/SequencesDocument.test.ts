import { Result } from "effect"
import { expect, it } from "vitest"
import type { SequenceExport } from "../../request/SequenceExport.ts"
import { make as tensor } from "../../tensor/TypedTensor.ts"
import * as SequencesDocument from "./SequencesDocument.ts"

const head = { format: 1, model: "sums", states: "batch:SUM_IN>SUM_OUT:INT32[1]" }

const bytesOf = (document: unknown) => new TextEncoder().encode(JSON.stringify(document))

const failureOf = (read: Result.Result<unknown, { readonly message: string }>) =>
  Result.isFailure(read) ? read.failure.message : "no failure"

it("an export is read as it was written", () => {
  const exported: SequenceExport = {
    ...head,
    sequences: [
      { id: 7n, ageNanos: 1_250_000_000, tensors: [tensor("INT32", [1, 1], Int32Array.of(3))] },
      { id: "7", ageNanos: 0, maxIdleNanos: 30e9, tensors: undefined },
      { id: "8", ageNanos: 0, maxIdleNanos: Infinity, tensors: undefined },
    ],
  }
  const { sequences, ...rest } = Result.getOrThrow(
    SequencesDocument.read(bytesOf(SequencesDocument.document(exported))),
  )
  expect(rest).toEqual(head)
  expect(sequences).toMatchObject([
    { id: 7n, ageNanos: 1_250_000_000, tensors: [{ datatype: "INT32", shape: [1, 1], data: Int32Array.of(3) }] },
    { id: "7", ageNanos: 0, maxIdleNanos: 30e9, tensors: undefined },
    { id: "8", ageNanos: 0, maxIdleNanos: Infinity, tensors: undefined },
  ])
  expect(sequences[0]?.maxIdleNanos).toBeUndefined()
})

it("an export and a selection have 4,096 sequences at most", () => {
  const limit = "more than 4096 elements, the maximum allowed"
  const ids = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ id: String(index + 1), datatype: "UINT64" }))
  const sequences = (count: number) => ids(count).map((id) => ({ ...id, age_ms: 0 }))
  expect(Result.isSuccess(SequencesDocument.read(bytesOf({ ...head, sequences: sequences(4096) })))).toBe(true)
  expect(failureOf(SequencesDocument.read(bytesOf({ ...head, sequences: sequences(4097) })))).toContain(limit)
  expect(failureOf(SequencesDocument.readSelection(bytesOf({ ids: ids(4097) })))).toContain(limit)
})

it("an id that no request could have is refused", () => {
  const sequences = (id: string) => [{ id, datatype: "BYTES", age_ms: 0 }]
  expect(Result.isSuccess(SequencesDocument.read(bytesOf({ ...head, sequences: sequences("x".repeat(128)) })))).toBe(
    true,
  )
  expect(failureOf(SequencesDocument.read(bytesOf({ ...head, sequences: sequences("x".repeat(129)) })))).toBe(
    "the string of the 'sequence_id' parameter cannot be longer than 128 bytes, got 129",
  )
})

it("an empty selection has all sequences", () => {
  expect(SequencesDocument.readSelection(new Uint8Array())).toEqual(
    Result.succeed({ ids: undefined, waitMillis: undefined }),
  )
})
