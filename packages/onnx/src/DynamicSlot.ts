/**
 * A slot of shared memory for one batch whose tensors may have any shape. A header holds the offset, length and shape
 * of each tensor. The bytes of outputs are behind those of inputs. Slots.ts has the slots of fixed shapes,
 * which need no header. Both threads load this module, so it does not import Effect.
 *
 *   | end │ A: offset, bytes, rank, dims │ B: … │ C: … | bytes of A │ bytes of B │ bytes of C │ unused |
 *
 * A slot uses no more memory than its largest batch so far: the operating system provides a page at its first write.
 */
import { byteWidth, type FixedDataType } from "@nereid/core/internal/tensor/DataType"
import * as SmallMemory from "@nereid/core/internal/tensor/SmallMemory"
import { isDynamic, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { align } from "./Slots.ts"

/** Larger batches travel as messages. */
const maxSlotBytes = 1024 * 1024

/** A tensor of a higher rank has no place in the header. */
const maxRank = 8

/** 32-bit words per tensor in the header: offset, bytes, rank and dims. */
const tensorWords = 3 + maxRank
const [OFFSET, BYTES, RANK, DIMS] = [0, 1, 2, 3]

/** The word with the first unused byte of the slot. */
const END = 0

const maxExtent = 2 ** 31 - 1

export interface DynamicTensor {
  readonly name: string
  readonly datatype: FixedDataType
}

export interface DynamicOutput extends DynamicTensor {
  /** The dims without the batch dimension, if they are known before the run. */
  readonly dims: ReadonlyArray<number> | undefined
}

export interface DynamicLayout {
  /** Whether tensors have a batch dimension. */
  readonly batching: boolean
  readonly slotBytes: number
  readonly inputs: ReadonlyArray<DynamicTensor>
  readonly outputs: ReadonlyArray<DynamicOutput>
}

/** Returns the layout of slots for this signature; undefined if it has strings. */
export const layout = (
  { inputs, outputs }: Signature,
  maxBatchSize: number,
  slotBytes = maxSlotBytes,
): DynamicLayout | undefined => {
  const [dynamicInputs, dynamicOutputs] = [inputs.flatMap(tensor), outputs.flatMap(tensor)]
  if (dynamicInputs.length < inputs.length || dynamicOutputs.length < outputs.length) return undefined
  if (headerBytes(inputs.length + outputs.length) > slotBytes) return undefined
  const isInput = (name: string) => inputs.some((input) => input.name === name)
  return {
    batching: maxBatchSize > 0,
    slotBytes,
    inputs: dynamicInputs,
    outputs: dynamicOutputs.map((output, index) => ({
      ...output,
      // ONNX Runtime 1.30 does not copy an input that is also an output to the given memory.
      dims: isInput(output.name) ? undefined : fixedDims(outputs[index]?.dims ?? []),
    })),
  }
}

const tensor = ({ name, datatype }: TensorSpec): ReadonlyArray<DynamicTensor> =>
  datatype === "BYTES" ? [] : [{ name, datatype }]

const fixedDims = (dims: TensorSpec["dims"]): ReadonlyArray<number> | undefined =>
  dims.some(isDynamic) ? undefined : dims.map(Number)

const headerBytes = (tensors: number): number => align(4 * (1 + tensorWords * tensors))

/** The slot at an offset of the memory. Positions of tensors count the inputs, then the outputs. */
export class DynamicSlot {
  readonly #words: Int32Array<SharedArrayBuffer>
  readonly #bytes: Uint8Array<SharedArrayBuffer>
  readonly #dataStart: number
  /** Positions of the outputs. */
  readonly #outputs: ReadonlyArray<number>

  constructor(of: DynamicLayout, memory: SharedArrayBuffer, slotOffset: number) {
    const tensors = of.inputs.length + of.outputs.length
    this.#words = new Int32Array(memory, slotOffset, 1 + tensorWords * tensors)
    this.#bytes = new Uint8Array(memory, slotOffset, of.slotBytes)
    this.#dataStart = headerBytes(tensors)
    this.#outputs = of.outputs.map((_, index) => of.inputs.length + index)
  }

  /** Overwrites the slot with copies of all inputs; false if the slot is too small or an input is missing. */
  writeInputs(tensors: ReadonlyArray<TypedTensor | undefined>): boolean {
    this.#words[END] = this.#dataStart
    for (const [position, tensor] of tensors.entries()) {
      if (tensor === undefined || !this.write(position, tensor.shape, tensor.bytes)) return false
    }
    return true
  }

  /** Copies all outputs, so that callers may keep them while the slot is reused. */
  copyOutputs(): ReadonlyArray<{ readonly dims: Array<number>; readonly data: Uint8Array<ArrayBuffer> }> {
    return this.#outputs.map((position) => ({
      dims: this.shape(position),
      data: SmallMemory.copy(this.bytes(position)),
    }))
  }

  /** Reserves uninitialized bytes for a tensor behind those before it; false if the slot is too small. */
  reserve(position: number, shape: ReadonlyArray<number>, byteLength: number): boolean {
    const words = this.#words
    const start = words[END] ?? 0
    if (byteLength > this.#bytes.length - start || shape.length > maxRank) return false
    const word = wordOf(position)
    words[word + OFFSET] = start
    words[word + BYTES] = byteLength
    words[word + RANK] = shape.length
    for (let axis = 0; axis < shape.length; axis++) {
      const extent = shape[axis] ?? 0
      if (extent > maxExtent) return false
      words[word + DIMS + axis] = extent
    }
    words[END] = Math.min(align(start + byteLength), this.#bytes.length)
    return true
  }

  /** Copies a tensor into the slot; false if the slot is too small. */
  write(position: number, shape: ReadonlyArray<number>, bytes: Uint8Array): boolean {
    if (!this.reserve(position, shape, bytes.length)) return false
    this.#bytes.set(bytes, this.#words[wordOf(position) + OFFSET])
    return true
  }

  shape(position: number): Array<number> {
    const word = wordOf(position)
    return Array.from(this.#words.subarray(word + DIMS, word + DIMS + (this.#words[word + RANK] ?? 0)))
  }

  /** A view of the tensor's bytes in the slot. */
  bytes(position: number): Uint8Array<SharedArrayBuffer> {
    const word = wordOf(position)
    const start = this.#words[word + OFFSET] ?? 0
    return this.#bytes.subarray(start, start + (this.#words[word + BYTES] ?? 0))
  }
}

const wordOf = (position: number): number => 1 + tensorWords * position

/** Bytes of a tensor of this shape. */
export const byteLength = (datatype: FixedDataType, shape: ReadonlyArray<number>): number => {
  let bytes = byteWidth(datatype) ?? 0
  for (const extent of shape) bytes *= extent
  return bytes
}
