/**
 * Worker's side of a DynamicSlot: the tensors of ONNX Runtime in the slot, before and after a run. The runtime reads
 * the inputs there. It also writes outputs there if their shapes are known before the run; other outputs are copied
 * afterwards. Effect-free, as the worker.
 */
import type { FixedDataType } from "@nereid/core/internal/tensor/DataType"
import type { Tensor } from "onnxruntime-node"
import * as DynamicSlot from "./DynamicSlot.ts"
import * as OrtTensor from "./OrtTensor.ts"
import * as Slots from "./Slots.ts"

/** Memory for outputs, by name; null for memory of the runtime. */
export type Fetches = Record<string, Tensor | null>

export class DynamicRun {
  readonly #layout: DynamicSlot.DynamicLayout
  readonly #slot: DynamicSlot.DynamicSlot

  constructor(layout: DynamicSlot.DynamicLayout, memory: SharedArrayBuffer, slot: number) {
    this.#layout = layout
    this.#slot = new DynamicSlot.DynamicSlot(layout, memory, Slots.slotOffset(layout, slot))
  }

  /** The tensors of the batch that is in the slot now. */
  tensors(): { readonly feeds: Record<string, Tensor>; readonly fetches: Fetches } {
    const { inputs, outputs, batching } = this.#layout
    const feeds: Record<string, Tensor> = {}
    for (const [position, { name, datatype }] of inputs.entries()) feeds[name] = this.#tensor(datatype, position)
    const batch = batching ? this.#slot.shape(0).slice(0, 1) : []
    const fetches: Fetches = {}
    for (const [index, { name, datatype, dims }] of outputs.entries()) {
      const position = inputs.length + index
      const shape = dims && [...batch, ...dims]
      const isReserved =
        shape !== undefined && this.#slot.reserve(position, shape, DynamicSlot.byteLength(datatype, shape))
      fetches[name] = isReserved ? this.#tensor(datatype, position) : null
    }
    return { feeds, fetches }
  }

  /** Copies the outputs that the runtime allocated into the slot; false if they do not fit. */
  take(fetches: Fetches, results: Readonly<Record<string, Tensor>>): boolean {
    const { inputs, outputs } = this.#layout
    for (const [index, { name }] of outputs.entries()) {
      if (fetches[name] !== null) continue
      const output = results[name]
      const bytes = output === undefined ? undefined : OrtTensor.bytes(output)
      if (output === undefined || bytes === undefined) return false
      if (!this.#slot.write(inputs.length + index, output.dims, bytes)) return false
    }
    return true
  }

  #tensor(datatype: FixedDataType, position: number): Tensor {
    const { buffer, byteOffset } = this.#slot.bytes(position)
    return OrtTensor.onMemory(datatype, this.#slot.shape(position), buffer, byteOffset)
  }
}
