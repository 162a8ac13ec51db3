/**
 * Encodes requests into the rows of a shared memory slot, and decodes the outputs of a slot as responses.
 * WorkerInstance.ts decides which slot to use, and when.
 */
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Response } from "@nereid/core/internal/request/Request"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type * as Slots from "./Slots.ts"

/**
 * Whether the states of the batch are the state outputs of the slot at this offset, in the same rows: they are read
 * there. Requests whose batches stay together need no copy of their states.
 */
export const isLinked = (
  { links }: Slots.Layout,
  batch: Batch.Batch,
  memory: SharedArrayBuffer,
  slotOffset: number,
): boolean => {
  if (links.length === 0 || Batch.totalRows(batch) !== batch.rows) return false
  for (const { input, output } of links) {
    let start = slotOffset + output.offset
    for (const { inputs } of batch.requests) {
      const bytes = inputs[input]?.bytes
      if (bytes?.buffer !== memory || bytes.byteOffset !== start) return false
      start += bytes.length
    }
  }
  return true
}

/**
 * Copies each request's bytes once, to where ONNX Runtime reads them, and the last row until the batch is full. With
 * `isLinked`, without the states.
 */
export const write = (layout: Slots.Layout, slot: Uint8Array, batch: Batch.Batch, isLinked = false): void => {
  const missing = Batch.totalRows(batch) - batch.rows
  for (const [index, { name, offset, bytesPerRow }] of layout.inputs.entries()) {
    if (isLinked && layout.links.some(({ input }) => input === index)) continue
    let start = offset
    for (const { inputs, rows } of batch.requests) {
      const bytes = inputs[index]?.bytes
      // Checked where requests come in; here a wrong length would write into another request's rows.
      if (bytes?.length !== rows * bytesPerRow) {
        throw new RangeError(`Input '${name}' of ${rows} rows has ${bytes?.length} bytes. This is a bug.`)
      }
      slot.set(bytes, start)
      start += bytes.length
    }
    for (let row = 0; row < missing; row++) slot.copyWithin(start + row * bytesPerRow, start - bytesPerRow, start)
  }
}

/**
 * Reads the responses of a batch. The outputs are copied once per batch, and each response is a view of the copy.
 * Callers may keep tensors, while the slot is reused at once. Sockets and TextDecoder do not accept shared memory.
 * Outputs from `copiedFrom` on are views of the slot.
 */
export const read = (layout: Slots.Layout, slot: Uint8Array, batch: Batch.Batch): ReadonlyArray<Response> => {
  const { rows, copiedFrom = layout.outputs.length } = batch
  const outputs = layout.outputs.map(({ datatype, dims, offset, bytesPerRow }, position) => {
    const inSlot = slot.subarray(offset, offset + bytesPerRow * rows)
    const bytes = position < copiedFrom ? new Uint8Array(inSlot) : inSlot
    return new TypedTensor(datatype, layout.batching ? [rows, ...dims] : dims, bytes)
  })
  return Batch.split(batch, outputs)
}
