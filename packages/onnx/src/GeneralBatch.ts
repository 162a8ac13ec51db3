/**
 * Batches as messages, for batches that do not fit a slot: strings, and too many bytes. Slower than SlotBatch.ts and
 * DynamicSlot.ts, but supports every tensor that ONNX Runtime takes.
 */
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Definition } from "@nereid/core/internal/model/Definition"
import { ExecutionFailed, InvalidRequest } from "@nereid/core/Errors"
import type { Fields } from "@nereid/core/internal/model/Field"
import { errorPrefix, type Request, type Response } from "@nereid/core/internal/request/Request"
import * as Padding from "@nereid/core/internal/batch/Padding"
import { matches, print, type TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { encodeElements, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Result } from "effect"
import type { GeneralInputs, TensorMessage } from "./SessionProtocol.ts"

type Model = Definition<Fields, Fields>

// `ignoreBOM`: a leading U+FEFF is part of the text.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/**
 * Returns an error for a request with strings that ONNX Runtime cannot take. Its strings are UTF-8, and its Node
 * binding truncates them at the first NUL.
 */
export const refusal = ({ name, signature }: Model, request: Request): InvalidRequest | undefined => {
  for (const [index, spec] of signature.inputs.entries()) {
    const tensor = request.inputs[index]
    if (spec.datatype !== "BYTES" || tensor === undefined) continue
    for (const [element, text] of texts(tensor).entries()) {
      const problem = text === undefined ? "is not UTF-8" : text.includes("\0") ? "contains a NUL" : undefined
      if (problem === undefined) continue
      const message = `element ${element} of input '${spec.name}' of model '${name}' ${problem}, which ONNX Runtime cannot take`
      return new InvalidRequest({ message: `${errorPrefix(request)}${message}` })
    }
  }
  return undefined
}

/** One tensor per input, in buffers that may be transferred. No request may have a refusal. */
export const encode = (tensors: ReadonlyArray<TypedTensor | undefined>): GeneralInputs =>
  tensors.flatMap((tensor) => (tensor === undefined ? [] : [message(tensor)]))

/** The buffers to transfer along with a message. */
export const buffers = (tensors: GeneralInputs): Array<ArrayBuffer> =>
  tensors.flatMap(({ data }) => (data instanceof Uint8Array ? [data.buffer] : []))

// Copies the bytes, because they are a view of a larger buffer.
const message = (tensor: TypedTensor): TensorMessage =>
  tensor.datatype === "BYTES"
    ? { dims: tensor.shape, data: texts(tensor).map((text) => text ?? "") }
    : { dims: tensor.shape, data: new Uint8Array(tensor.bytes) }

/** Decodes the elements as strings; undefined for invalid ones. */
const texts = (tensor: TypedTensor): ReadonlyArray<string | undefined> => {
  const elements: TypedTensor["data"] = tensor.data
  if (!Array.isArray(elements)) return []
  return elements.map((element: Uint8Array) => {
    try {
      return decoder.decode(element)
    } catch {
      return undefined
    }
  })
}

/**
 * Decodes the responses of a batch, or returns an error for invalid outputs. Their shapes are known only after the run.
 */
export const decode = (
  { name, signature, maxBatchSize, sequencing }: Model,
  batch: Batch.Batch,
  outputs: ReadonlyArray<TensorMessage>,
): Result.Result<ReadonlyArray<Response>, ExecutionFailed> => {
  const tensors: Array<TypedTensor> = []
  const rows = Batch.totalRows(batch)
  for (const [index, spec] of signature.outputs.entries()) {
    const output = outputs[index]
    const wrong = output === undefined ? "is missing" : misshapen(spec, output.dims, maxBatchSize, rows)
    const isState = sequencing?.states.some((state) => state.output === spec.name) ?? false
    if (isState && maxBatchSize > 0 && output !== undefined && (output.dims[0] ?? 0) < rows) {
      return Result.fail(new ExecutionFailed({ message: tooFewStates(spec.name, rows, output.dims) }))
    }
    if (output === undefined || wrong !== undefined) {
      return Result.fail(new ExecutionFailed({ message: `output '${spec.name}' of model '${name}' ${wrong}` }))
    }
    const bytes =
      output.data instanceof Uint8Array ? output.data : encodeElements(output.data.map((text) => encoder.encode(text)))
    tensors.push(new TypedTensor(spec.datatype, output.dims, bytes))
  }
  const uncut = batch.padding && Padding.problem(batch.padding, tensors)
  if (uncut !== undefined) {
    const output = signature.outputs[uncut.position]?.name
    return Result.fail(new ExecutionFailed({ message: `output '${output}' of model '${name}': ${uncut.message}` }))
  }
  return Result.succeed(Batch.split(batch, tensors))
}

const misshapen = (spec: TensorSpec, dims: ReadonlyArray<number>, maxBatchSize: number, rows: number) => {
  const [batching, expected] = maxBatchSize > 0 ? [1, [rows, ...spec.dims]] : [0, spec.dims]
  const right = matches(spec.dims, dims, batching) && (batching === 0 || dims[0] === rows)
  return right ? undefined : `has shape [${dims}], but is declared as ${print(spec.datatype, expected)}`
}

// The text of Triton, whose clients may look for it.
const tooFewStates = (output: string, rows: number, [rowsOfState = 0]: ReadonlyArray<number>) =>
  `failed to split the output state tensor '${output}' in responses: ` +
  `expected batch size of at least ${rows} in model output, got ${rowsOfState}`
