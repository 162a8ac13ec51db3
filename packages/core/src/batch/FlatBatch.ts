/**
 * Flat batches of requests with different input shapes, as in Triton. The elements of a ragged input are concatenated
 * in one flat tensor. Batch inputs, added by the server, tell the model where each request begins and ends. Outputs may
 * be flat too. Padding.ts serves models without support for flat batches.
 *
 *   request A, X [1,3]  a a a  ─┐  X [5]    a a a b b  ─┐
 *                               ├► ENDS [2] 3 5         ├► Y [5]  y y y y y  ─► Y of A [1,3], Y of B [1,2]
 *   request B, X [1,2]  b b    ─┘                      ─┘
 *
 * The instance executes the batch as one request of a model without a batch dimension (`inner`).
 */
import { Result } from "effect"
import type { Batch } from "./Batch.ts"
import type { Definition } from "../model/Definition.ts"
import { ExecutionFailed } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import { noParameters, type Request, type Response } from "../request/Request.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { concat, elementCount, make, reshape, split, TypedTensor } from "../tensor/TypedTensor.ts"

/**
 * Kind of an input that the server adds to a batch. It is computed from the tensors of its source, one for each
 * request, batch dimension included:
 *
 * | | shape | values |
 * |---|---|---|
 * | `BATCH_ELEMENT_COUNT` | [requests] | number of elements of each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT` | [requests] | end of each request |
 * | `BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO` | [requests + 1] | 0, then the end of each request |
 * | `BATCH_MAX_ELEMENT_COUNT_AS_SHAPE` | [most elements] | zeros; only the shape is significant |
 * | `BATCH_ITEM_SHAPE` | [rows, dims] | the shape of each row, without the batch dimension |
 * | `BATCH_ITEM_SHAPE_FLATTEN` | [rows × dims] | the same, flattened |
 */
export type BatchInputKind =
  | "BATCH_ELEMENT_COUNT"
  | "BATCH_ACCUMULATED_ELEMENT_COUNT"
  | "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"
  | "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"
  | "BATCH_ITEM_SHAPE"
  | "BATCH_ITEM_SHAPE_FLATTEN"

export interface BatchInputOptions<Name extends string = string> {
  readonly kind: BatchInputKind
  readonly datatype: "FP32" | "INT32" | "INT64"
  /** The input that it is about. */
  readonly source: Name
}

export interface FlatOptions<Name extends string = string> {
  /** Inputs whose shapes may differ among the requests of a batch, and which come as one flat tensor. */
  readonly inputs: ReadonlyArray<Name>
  /** Further inputs, by name, which the server makes. Default none. */
  readonly batchInputs?: { readonly [name: string]: BatchInputOptions<Name> }
  /**
   * Outputs that are flat, by name: as long as all of this input, and to be cut and shaped like it. Any other has the
   * rows of the batch. Default none.
   */
  readonly batchOutputs?: { readonly [name: string]: Name }
}

interface BatchInput {
  readonly name: string
  readonly kind: BatchInputKind
  readonly datatype: BatchInputOptions["datatype"]
  /** In the signature's inputs, as are all these positions. */
  readonly source: number
}

export interface FlatBatch {
  readonly inputs: ReadonlySet<number>
  readonly batchInputs: ReadonlyArray<BatchInput>
  /** From positions in the signature's outputs. */
  readonly batchOutputs: ReadonlyMap<number, number>
}

type AnyDefinition = Definition<Fields, Fields>

/** @throws TypeError if an option names an unknown tensor, or does not match the declaration */
export const resolve = (
  { name, signature, maxBatchSize, batching }: AnyDefinition,
  options: FlatOptions,
): FlatBatch => {
  const refuse = (text: string) => new TypeError(`Model "${name}": flat ${text}.`)
  if (maxBatchSize === 0) throw refuse("requires batching: maxBatchSize is 0")
  if (batching.ragged.length > 0 || batching.padTo.length > 0) throw refuse("cannot be combined with ragged or padTo")
  const input = (inputName: string, option: string) => {
    const position = signature.inputs.findIndex((spec) => spec.name === inputName)
    if (position < 0) throw refuse(`${option} names the unknown input "${inputName}"`)
    return position
  }
  const source = (inputName: string, option: string) => {
    const position = input(inputName, option)
    if (signature.inputs[position]?.optional === true) throw refuse(`${option} names the optional input "${inputName}"`)
    return position
  }
  const { inputs, batchInputs = {}, batchOutputs = {} } = options
  return {
    inputs: new Set(inputs.map((inputName) => input(inputName, "inputs"))),
    batchInputs: Object.entries(batchInputs).map(([name, { kind, datatype, source: inputName }]) => {
      const option = `batchInputs.${name}`
      if (signature.inputs.some((spec) => spec.name === name))
        throw refuse(`${option} has the name of a declared input`)
      return { name, kind, datatype, source: source(inputName, option) }
    }),
    batchOutputs: new Map(
      Object.entries(batchOutputs).map(([name, inputName]) => {
        const option = `batchOutputs.${name}`
        const position = signature.outputs.findIndex((spec) => spec.name === name)
        if (position < 0) throw refuse(`${option} is not a declared output`)
        return [position, source(inputName, option)]
      }),
    ),
  }
}

/** The definition of the model that the instance executes: flat inputs and outputs, and the added batch inputs. */
export const flatDefinition = <D extends AnyDefinition>(flat: FlatBatch, definition: D): D => {
  const { signature } = definition
  const rows = (spec: TensorSpec): TensorSpec => ({ ...spec, dims: [-1, ...spec.dims] })
  const flatten = (spec: TensorSpec): TensorSpec => ({ ...spec, dims: [-1] })
  const batchInputSpecs = flat.batchInputs.map(({ name, kind, datatype, source }): TensorSpec => {
    const rank = signature.inputs[source]?.dims.length ?? 0
    return { name, datatype, dims: kind === "BATCH_ITEM_SHAPE" ? [-1, rank] : [-1], optional: false }
  })
  return {
    ...definition,
    maxBatchSize: 0,
    signature: {
      inputs: [
        ...signature.inputs.map((spec, at) => (flat.inputs.has(at) ? flatten(spec) : rows(spec))),
        ...batchInputSpecs,
      ],
      outputs: signature.outputs.map((spec, at) => (flat.batchOutputs.has(at) ? flatten(spec) : rows(spec))),
    },
  }
}

/** The requests of a batch as one. */
export const join = (flat: FlatBatch, { requests }: Batch): Request => {
  const [first] = requests
  const joined = (first?.inputs ?? []).map((_, position) => {
    const [one, ...others] = tensorsAt(requests, position).map((tensor) =>
      flat.inputs.has(position) ? reshape(tensor, [elementCount(tensor.shape)]) : tensor,
    )
    return one && concat([one, ...others])
  })
  const batchInputTensors = flat.batchInputs.map(({ kind, datatype, source }) => {
    const { shape, numbers } = batchInputValues(kind, tensorsAt(requests, source))
    return tensorOf(datatype, shape, numbers)
  })
  const id = requests.length === 1 ? (first?.id ?? "") : ""
  return { id, inputs: [...joined, ...batchInputTensors], rows: 1, parameters: noParameters, deadline: undefined }
}

/** Cuts the response to `join` into the responses to the requests; or describes the problem with it. */
export const cut = (
  flat: FlatBatch,
  { name, signature }: Pick<AnyDefinition, "name" | "signature">,
  { requests, rows }: Batch,
  { outputs, parameters }: Response,
): Result.Result<ReadonlyArray<Response>, ExecutionFailed> => {
  const responses = requests.map((): Array<TypedTensor | undefined> => [])
  for (const [position, output] of outputs.entries()) {
    if (output === undefined) {
      for (const response of responses) response.push(undefined)
      continue
    }
    const source = flat.batchOutputs.get(position)
    const shapes = source === undefined ? undefined : tensorsAt(requests, source).map(({ shape }) => shape)
    const extents = shapes?.map(elementCount) ?? requests.map((request) => request.rows)
    const all = shapes === undefined ? rows : extents.reduce((sum, extent) => sum + extent, 0)
    if (output.shape[0] !== all) {
      const expected = `${all} ${shapes === undefined ? "rows" : "elements"}, as in its inputs`
      const message = `output '${signature.outputs[position]?.name}' of model '${name}' has shape [${output.shape}]`
      return Result.fail(new ExecutionFailed({ message: `${message}, expected ${expected}` }))
    }
    for (const [index, part] of split(output, extents).entries()) {
      responses[index]?.push(new TypedTensor(part.datatype, shapes?.[index] ?? part.shape, part.bytes))
    }
  }
  return Result.succeed(responses.map((outputs) => ({ outputs, parameters })))
}

const tensorsAt = (requests: ReadonlyArray<Request>, position: number): ReadonlyArray<TypedTensor> =>
  requests.flatMap(({ inputs }) => inputs[position] ?? [])

const batchInputValues = (
  kind: BatchInputKind,
  tensors: ReadonlyArray<TypedTensor>,
): { readonly shape: ReadonlyArray<number>; readonly numbers: ReadonlyArray<number> } => {
  const flat = (numbers: ReadonlyArray<number>) => ({ shape: [numbers.length], numbers })
  const counts = tensors.map(({ shape }) => elementCount(shape))
  switch (kind) {
    case "BATCH_ELEMENT_COUNT":
      return flat(counts)
    case "BATCH_ACCUMULATED_ELEMENT_COUNT":
      return flat(accumulated(counts))
    case "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
      return flat([0, ...accumulated(counts)])
    case "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE":
      return flat(Array.from({ length: Math.max(0, ...counts) }, () => 0))
    default: {
      const shapes = tensors.flatMap(({ shape: [rows = 0, ...dims] }) => Array.from({ length: rows }, () => dims))
      const numbers = shapes.flat()
      return kind === "BATCH_ITEM_SHAPE" ? { shape: [shapes.length, shapes[0]?.length ?? 0], numbers } : flat(numbers)
    }
  }
}

const accumulated = (counts: ReadonlyArray<number>): ReadonlyArray<number> => {
  let sum = 0
  return counts.map((count) => (sum += count))
}

const tensorOf = (
  datatype: BatchInputOptions["datatype"],
  shape: ReadonlyArray<number>,
  numbers: ReadonlyArray<number>,
): TypedTensor => {
  switch (datatype) {
    case "FP32":
      return make(datatype, shape, Float32Array.from(numbers))
    case "INT32":
      return make(datatype, shape, Int32Array.from(numbers))
    case "INT64":
      return make(datatype, shape, BigInt64Array.from(numbers, BigInt))
  }
}
