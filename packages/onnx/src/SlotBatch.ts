/**
 * Batches in slots: requests into their rows of shared memory, and the outputs of a slot as responses. Which slot, and
 * when it may be used, is WorkerInstance.ts's business.
 */
import * as Batch from "@nereid/core/Batch"
import type { Response } from "@nereid/core/Inference"
import { TypedTensor } from "@nereid/core/TypedTensor"
import type * as Slots from "./Slots.ts"

/** Copies each request's bytes once, to where ONNX Runtime reads them. */
export const write = (layout: Slots.Layout, slot: Uint8Array, { requests }: Batch.Batch): void => {
  for (const [index, { name, offset, bytesPerRow }] of layout.inputs.entries()) {
    let start = offset
    for (const { inputs, rows } of requests) {
      const bytes = inputs[index]?.bytes
      // Checked where requests come in; here a wrong length would write into another request's rows.
      if (bytes?.length !== rows * bytesPerRow) {
        throw new RangeError(`Input '${name}' of ${rows} rows has ${bytes?.length} bytes. This is a bug.`)
      }
      slot.set(bytes, start)
      start += bytes.length
    }
  }
}

/**
 * The responses of a batch. The outputs are copied, once for the whole batch, and each response views that copy: callers
 * keep tensors for as long as they like, while the slot is used again at once, and neither sockets nor TextDecoder take
 * shared memory.
 */
export const read = (layout: Slots.Layout, slot: Uint8Array, batch: Batch.Batch): ReadonlyArray<Response> => {
  const outputs = layout.outputs.map(({ datatype, dims, offset, bytesPerRow }) => {
    const bytes = new Uint8Array(bytesPerRow * batch.rows)
    bytes.set(slot.subarray(offset, offset + bytes.length))
    return new TypedTensor(datatype, layout.batching ? [batch.rows, ...dims] : dims, bytes)
  })
  return Batch.split(batch, outputs)
}
