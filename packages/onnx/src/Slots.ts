/**
 * Layout of the shared memory between an instance and its worker: control words, and slots that each hold a whole
 * batch. Both sides compute addresses from the same layout. The worker loads this module, so it does not import Effect.
 *
 *   | control, 128 bytes | slot 0: input A │ input B │ output C | slot 1: input A │ input B │ output C |
 *
 * A batch is a sequence number. It stands in slot `sequence % 2` and has its KIND, OUTCOME and DURATION words at
 * `sequence % 4`: there are two more of these than slots, so that a STOP always finds its place behind the two batches
 * in flight.
 */
import { byteWidth, type FixedDataType } from "@nereid/core/internal/tensor/DataType"
import { isDynamic, type Signature, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"

/** Two: one runs while the next is filled. A third brought nothing when measured. */
export const slotCount = 2

/** The next sequence number to be handed over; written by the instance, waited for by the worker. */
export const HEAD = 0
const KIND = 1
/**
 * Sequence number of the next batch to complete. The worker writes it in a separate cache line; the instance waits for
 * it.
 */
export const DONE = 16
const OUTCOME = 17
/** Index in units of 8 bytes. */
const DURATION = 12
const wordCount = 4

/** Kinds of handover. A positive number is the number of rows in the slot, possibly with `LINKED`. */
export const GENERAL = -1
/** Tensors in a DynamicSlot. */
export const DYNAMIC = -2
export const STOP = 0
/** Added to the number of rows: the inputs of `links` are the outputs of the other slot. */
export const LINKED = 2 ** 30

/** Kinds of outcome: outputs in the slot, or a message on the port. */
export const IN_SLOT = 0
export const BY_MESSAGE = 1

export const kindWord = (sequence: number): number => KIND + (sequence & (wordCount - 1))
export const outcomeWord = (sequence: number): number => OUTCOME + (sequence & (wordCount - 1))
/** The place in `durations` of how long the run has taken, in nanoseconds. */
export const durationWord = (sequence: number): number => DURATION + (sequence & (wordCount - 1))

/** Sequence numbers wrap at 32 bits, like the words that hold them. */
export const next = (sequence: number): number => (sequence + 1) | 0

/** Alignment of tensors, in bytes: a cache line, which suits ONNX Runtime and all typed arrays. */
const alignment = 64
const controlBytes = 128

/** A bigger batch takes the general path: a slot is kept for as long as the model is loaded. */
const maxSlotBytes = 16 * 1024 * 1024

/** Position of one tensor in a slot. */
export interface SlotRegion {
  readonly name: string
  readonly datatype: FixedDataType
  /** From the beginning of the slot. */
  readonly offset: number
  /** Dims without the batch dimension. */
  readonly dims: ReadonlyArray<number>
  readonly bytesPerRow: number
}

/** A state: the output of one batch may be the input of the next one, where it is. */
export interface SlotLink {
  /** Position among the inputs. */
  readonly input: number
  readonly output: SlotRegion
}

export interface Layout {
  /** Whether tensors have a batch dimension; if not, a batch is one row. */
  readonly batching: boolean
  /** The most rows that a slot holds. */
  readonly rows: number
  readonly slotBytes: number
  readonly inputs: ReadonlyArray<SlotRegion>
  readonly outputs: ReadonlyArray<SlotRegion>
  /** All states, of which each has the same size in both; otherwise none. */
  readonly links: ReadonlyArray<SlotLink>
}

/** A state of the graph, by the names of its tensors. */
export interface GraphState {
  readonly input: string
  readonly output: string
}

/**
 * Computes the layout for batches of this signature. Undefined if slots are impossible: dynamic shapes, strings, too
 * large, or an output that is also a graph input, which ONNX Runtime 1.30 does not copy to the given buffer.
 */
export const layout = (
  { inputs, outputs, states = [] }: Signature & { readonly states?: ReadonlyArray<GraphState> | undefined },
  maxBatchSize: number,
  maxBytes = maxSlotBytes,
): Layout | undefined => {
  const tensors: Array<Omit<SlotRegion, "offset">> = []
  for (const spec of [...inputs, ...outputs]) {
    const tensor = fixed(spec)
    if (tensor === undefined || tensors.some(({ name }) => name === spec.name)) return undefined
    tensors.push(tensor)
  }
  const rows = capacity(tensors, Math.max(1, maxBatchSize), maxBytes)
  if (rows === 0) return undefined
  let slotBytes = 0
  const regions = tensors.map((tensor): SlotRegion => {
    const offset = slotBytes
    slotBytes += align(tensor.bytesPerRow * rows)
    return { ...tensor, offset }
  })
  const own = { inputs: regions.slice(0, inputs.length), outputs: regions.slice(inputs.length) }
  return { batching: maxBatchSize > 0, rows, slotBytes, ...own, links: links(own, states) }
}

const links = (
  { inputs, outputs }: Pick<Layout, "inputs" | "outputs">,
  states: ReadonlyArray<GraphState>,
): ReadonlyArray<SlotLink> => {
  const all = states.flatMap((state) => {
    const input = inputs.findIndex(({ name }) => name === state.input)
    const output = outputs.find(({ name }) => name === state.output)
    return output?.bytesPerRow === inputs[input]?.bytesPerRow && output !== undefined ? { input, output } : []
  })
  return all.length === states.length ? all : []
}

const fixed = ({ name, datatype, dims }: TensorSpec): Omit<SlotRegion, "offset"> | undefined => {
  const width = byteWidth(datatype)
  if (datatype === "BYTES" || width === undefined || dims.some(isDynamic)) return undefined
  const extents = dims.map(Number)
  return { name, datatype, dims: extents, bytesPerRow: extents.reduce((bytes, extent) => bytes * extent, width) }
}

/** Returns the number of rows that fit, at most `rows`. */
const capacity = (tensors: ReadonlyArray<Omit<SlotRegion, "offset">>, rows: number, maxBytes: number): number => {
  const padding = tensors.length * (alignment - 1)
  const bytesPerRow = tensors.reduce((bytes, tensor) => bytes + tensor.bytesPerRow, 0)
  return Math.max(0, Math.min(rows, Math.floor((maxBytes - padding) / Math.max(1, bytesPerRow))))
}

export const align = (bytes: number): number => Math.ceil(bytes / alignment) * alignment

/** Allocates shared memory for the control words and, with a layout, the slots. */
export const allocate = (of: Pick<Layout, "slotBytes"> | undefined): SharedArrayBuffer =>
  new SharedArrayBuffer(controlBytes + slotCount * (of?.slotBytes ?? 0))

export const control = (memory: SharedArrayBuffer): Int32Array<SharedArrayBuffer> =>
  new Int32Array(memory, 0, controlBytes / 4)

export const durations = (memory: SharedArrayBuffer): Float64Array<SharedArrayBuffer> =>
  new Float64Array(memory, 0, controlBytes / 8)

/** The first byte of the slot in which this batch stands. */
export const slotOffset = (of: Pick<Layout, "slotBytes">, sequence: number): number =>
  controlBytes + (sequence & (slotCount - 1)) * of.slotBytes
