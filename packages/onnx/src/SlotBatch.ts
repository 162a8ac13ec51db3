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
  for (let index = 0; index < layout.inputs.length; index++) {
    let offset = layout.inputs[index]?.offset ?? 0
    for (const request of requests) {
      const tensor = request.inputs[index]
      if (tensor === undefined) continue
      slot.set(tensor.bytes, offset)
      offset += tensor.bytes.length
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
