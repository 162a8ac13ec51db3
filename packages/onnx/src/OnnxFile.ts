/**
 * Reads the signature of an .onnx file from its protobuf, without ONNX Runtime: names, element types and dims of the
 * graph's inputs and outputs. SignatureCheck.ts compares it with the declaration.
 */
import { fromBinary } from "@bufbuild/protobuf"
import type { DataType } from "@nereid/core/internal/tensor/DataType"
import type { Dim } from "@nereid/core/internal/tensor/TensorSpec"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import {
  type GraphProto,
  type ModelProto,
  ModelProtoSchema,
  type NodeProto,
  type SparseTensorProto,
  type TensorProto,
  TensorProto_DataType as ElementType,
  type TensorShapeProto,
  type ValueInfoProto,
} from "@nereid/protocol/onnx"
import * as FileValue from "./FileValue.ts"

export interface FileTensor {
  readonly name: string
  /** Datatype of the v2 protocol; undefined if there is no equivalent, or the value is not a tensor. */
  readonly datatype: DataType | undefined
  /** The datatype, or what the file has instead: `COMPLEX64`, `sequenceType`. */
  readonly type: string
  /** Dims with the batch dimension; undefined if the file states no shape. A dim without name or value is -1. */
  readonly dims: ReadonlyArray<Dim> | undefined
}

/** Input with a value in the file, which a run may override. */
export interface DefaultedInput extends FileTensor {
  /** Value; undefined if it is in another file. */
  readonly value: TypedTensor | undefined
}

export interface FileSignature {
  /** Inputs that every run must provide. */
  readonly inputs: ReadonlyArray<FileTensor>
  readonly defaultedInputs: ReadonlyArray<DefaultedInput>
  readonly outputs: ReadonlyArray<FileTensor>
}

const datatypes: { readonly [elementType: number]: DataType } = {
  [ElementType.BOOL]: "BOOL",
  [ElementType.UINT8]: "UINT8",
  [ElementType.UINT16]: "UINT16",
  [ElementType.UINT32]: "UINT32",
  [ElementType.UINT64]: "UINT64",
  [ElementType.INT8]: "INT8",
  [ElementType.INT16]: "INT16",
  [ElementType.INT32]: "INT32",
  [ElementType.INT64]: "INT64",
  [ElementType.FLOAT16]: "FP16",
  [ElementType.FLOAT]: "FP32",
  [ElementType.DOUBLE]: "FP64",
  [ElementType.BFLOAT16]: "BF16",
  [ElementType.STRING]: "BYTES",
}

const elementTypeNames = new Map(Object.entries(ElementType).map(([name, number]): [number, string] => [number, name]))

/**
 * Reads the signature from the bytes of an .onnx file. Weights are views, not copies. A graph input with an initializer
 * is optional; before IR version 4, all weights are listed as inputs, and such an input is ignored.
 * @throws Error if the bytes are not a model
 */
export const signature = (bytes: Uint8Array): FileSignature => signatureOf(parsed(bytes))

/**
 * Returns the paths of external weight files, relative to the model's folder.
 * @throws Error if the bytes are not a model
 */
export const externalFiles = (bytes: Uint8Array): ReadonlyArray<string> => externalFilesOf(parsed(bytes))

/**
 * Returns both.
 * @throws Error if the bytes are not a model
 */
export const read = (bytes: Uint8Array) => {
  const model = parsed(bytes)
  return { signature: signatureOf(model), externalFiles: externalFilesOf(model) }
}

const signatureOf = ({ graph, irVersion }: ModelProto): FileSignature => {
  if (graph === undefined) throw new Error("the file contains no graph")
  const constants = new Set(graph.initializer.map(({ name }) => name))
  for (const { values } of graph.sparseInitializer) if (values !== undefined) constants.add(values.name)
  return {
    inputs: graph.input.filter(({ name }) => !constants.has(name)).map(fileTensor),
    defaultedInputs: irVersion < 4n ? [] : graph.input.flatMap((input) => defaultedInput(input, graph.initializer)),
    outputs: graph.output.map(fileTensor),
  }
}

const externalFilesOf = ({ graph, functions }: ModelProto): ReadonlyArray<string> => {
  const tensors = [
    ...(graph === undefined ? [] : tensorsOf(graph)),
    ...functions.flatMap(({ node }) => tensorsOfNodes(node)),
  ]
  const locations = tensors.flatMap(({ externalData }) =>
    externalData.flatMap(({ key, value }) => (key === "location" ? [value] : [])),
  )
  return [...new Set(locations)]
}

const parsed = (bytes: Uint8Array): ModelProto => {
  try {
    return fromBinary(ModelProtoSchema, bytes, { readUnknownFields: false })
  } catch (error) {
    // The parser's own words are about the wire.
    throw new Error("the file is truncated or has another format", { cause: error })
  }
}

/** Returns all tensors, including those of nested graphs. */
const tensorsOf = ({ initializer, sparseInitializer, node }: GraphProto): ReadonlyArray<TensorProto> => [
  ...initializer,
  ...sparseInitializer.flatMap(partsOf),
  ...tensorsOfNodes(node),
]

const tensorsOfNodes = (nodes: ReadonlyArray<NodeProto>): ReadonlyArray<TensorProto> =>
  nodes.flatMap(({ attribute }) =>
    attribute.flatMap(({ t, tensors, sparseTensor, sparseTensors, g, graphs }) => [
      ...(t === undefined ? tensors : [t, ...tensors]),
      ...(sparseTensor === undefined ? sparseTensors : [sparseTensor, ...sparseTensors]).flatMap(partsOf),
      ...(g === undefined ? graphs : [g, ...graphs]).flatMap(tensorsOf),
    ]),
  )

const partsOf = ({ values, indices }: SparseTensorProto): ReadonlyArray<TensorProto> =>
  [values, indices].filter((part) => part !== undefined)

const defaultedInput = (
  input: ValueInfoProto,
  initializers: ReadonlyArray<TensorProto>,
): ReadonlyArray<DefaultedInput> => {
  const found = initializers.find(({ name }) => name === input.name)
  if (found === undefined) return []
  const tensor = fileTensor(input)
  return [{ ...tensor, value: tensor.datatype && FileValue.tensor(found, tensor.datatype) }]
}

const fileTensor = ({ name, type }: ValueInfoProto): FileTensor => {
  if (type?.value.case !== "tensorType") {
    return { name, datatype: undefined, type: type?.value.case ?? "no type", dims: undefined }
  }
  const { elemType, shape } = type.value.value
  const datatype = datatypes[elemType]
  const typeName = datatype ?? elementTypeNames.get(elemType) ?? `element type ${elemType}`
  return { name, datatype, type: typeName, dims: shape && dims(shape) }
}

const dims = (shape: TensorShapeProto): ReadonlyArray<Dim> =>
  shape.dim.map(({ value }) => {
    if (value.case === "dimValue") return Number(value.value)
    return value.case === "dimParam" && value.value !== "" ? value.value : -1
  })
