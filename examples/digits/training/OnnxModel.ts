/**
 * The trained network as the bytes of an ONNX file: one node per layer, one initializer per parameter. The training
 * computes one picture at a time, the file any number: `image` FP32 [batch,1,28,28] → `logits` FP32 [batch,10].
 */
import { create, toBinary } from "@bufbuild/protobuf"
import {
  AttributeProto_AttributeType as AttributeType,
  type AttributeProto,
  AttributeProtoSchema,
  ModelProtoSchema,
  type NodeProto,
  NodeProtoSchema,
  type TensorProto,
  TensorProto_DataType as DataType,
  TensorProtoSchema,
  type ValueInfoProto,
  ValueInfoProtoSchema,
  Version,
} from "@nereid/protocol/onnx"
import type { Layer, Parameter } from "./Layer.ts"
import { side } from "./Mnist.ts"
import type { Network } from "./Network.ts"

export const encode = (network: Network): Uint8Array =>
  toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: BigInt(Version.IR_VERSION_2021_7_30),
      producerName: "nereid",
      docString: "Handwritten digits, trained on MNIST by examples/digits/train.ts",
      opsetImport: [{ domain: "", version: 17n }],
      graph: {
        name: "digits",
        node: network.map((layer, index) => node(layer, valueName(network, index - 1), valueName(network, index))),
        initializer: network.flatMap(({ parameters }) => parameters.map(initializer)),
        input: [valueInfo("image", [1, side, side])],
        output: [valueInfo("logits", [10])],
      },
    }),
  )

/** The name of what the layer at `index` computes; -1 is the network's input. */
const valueName = (network: Network, index: number): string => {
  if (index === -1) return "image"
  return index === network.length - 1 ? "logits" : `${network[index]!.operator.toLowerCase()}_${index}`
}

const node = (layer: Layer, input: string, output: string): NodeProto =>
  create(NodeProtoSchema, {
    name: `${output}_node`,
    opType: layer.operator,
    input: [input, ...layer.parameters.map(({ name }) => name)],
    output: [output],
    attribute: Object.entries(layer.attributes).map(([name, value]) => attribute(name, value)),
  })

const attribute = (name: string, value: number | ReadonlyArray<number>): AttributeProto =>
  create(
    AttributeProtoSchema,
    typeof value === "number"
      ? { name, type: AttributeType.INT, i: BigInt(value) }
      : { name, type: AttributeType.INTS, ints: value.map(BigInt) },
  )

const initializer = ({ name, shape, values }: Parameter): TensorProto =>
  create(TensorProtoSchema, {
    name,
    dataType: DataType.FLOAT,
    dims: shape.map(BigInt),
    rawData: littleEndian(values),
  })

/** Converts to little-endian floats, as ONNX requires. */
const littleEndian = (values: Float32Array): Uint8Array => {
  const bytes = new Uint8Array(values.byteLength)
  const view = new DataView(bytes.buffer)
  for (const [index, value] of values.entries()) view.setFloat32(4 * index, value, true)
  return bytes
}

/** A float tensor of `shape` with a first dimension named "batch". */
const valueInfo = (name: string, shape: ReadonlyArray<number>): ValueInfoProto =>
  create(ValueInfoProtoSchema, {
    name,
    type: {
      value: {
        case: "tensorType",
        value: {
          elemType: DataType.FLOAT,
          shape: {
            dim: [
              { value: { case: "dimParam", value: "batch" } },
              ...shape.map((length) => ({ value: { case: "dimValue" as const, value: BigInt(length) } })),
            ],
          },
        },
      },
    },
  })
