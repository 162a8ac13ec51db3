/**
 * The expected outputs of a ModelInferRequest, by protobuf's encoding and the protocol's rules:
 * https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_grpc.md
 */
import { fromBinary } from "@bufbuild/protobuf"
import {
  type InferParameter,
  type InferTensorContents,
  type ModelInferRequest,
  ModelInferRequestSchema,
} from "@nereid/protocol/grpc_service"
import { bytesOf } from "../Elements.ts"
import type { GrpcCall } from "../GrpcConnection.ts"
import type { Element, Tensor } from "../InferRequest.ts"
import { ranges } from "./HttpOracle.ts"
import { selected } from "./ProtobufTree.ts"
import { deserved, type ReceivedTensor, refuse } from "./Verdict.ts"

/** @throws Refusal where it deserves no outputs */
export const outputsOf = ({ chunks, headers = {} }: GrpcCall): ReadonlyArray<Tensor> => {
  if (!/^[0-9]{1,8}[HMSmun]$/.test(headers["grpc-timeout"] ?? "1H")) refuse("timeout")
  const whole = Buffer.concat(chunks)
  if (whole.readUInt8(0) !== 0 || whole.readUInt32BE(1) !== whole.length - 5) refuse("prefix")
  const message = decoded(new Uint8Array(whole.subarray(5)))
  const { modelName: model, modelVersion: version, rawInputContents, inputs } = message
  for (const [name, parameter] of Object.entries(message.parameters)) checkParameter(name, parameter)
  if (rawInputContents.length > 0 && rawInputContents.length !== inputs.length) refuse("number of raw contents")
  const outputs = message.outputs.map(({ name, parameters }) => {
    if (Object.keys(parameters).some((key) => key.startsWith("shared_memory_"))) refuse("shared memory")
    if (!Object.hasOwn(parameters, "classification")) return { name, asJson: false, classification: undefined }
    const choice = parameters["classification"]?.parameterChoice
    if (choice?.case !== "int64Param") return refuse("classification")
    return { name, asJson: false, classification: Number(choice.value) }
  })
  return deserved({ model, version, inputs: inputs.map((_, index) => inputOf(message, index)), outputs }, false)
}

const decoded = (bytes: Uint8Array): ModelInferRequest => {
  try {
    return fromBinary(ModelInferRequestSchema, selected(ModelInferRequestSchema, bytes))
  } catch {
    return refuse("no message")
  }
}

const inputOf = ({ inputs, rawInputContents }: ModelInferRequest, index: number): ReceivedTensor => {
  const input = inputs[index] ?? refuse("no input")
  const { name, datatype, shape, contents, parameters } = input
  if (Object.keys(parameters).some((key) => key.startsWith("shared_memory_"))) refuse("shared memory")
  const raw = rawInputContents[index]
  if (contents === undefined) return { name, datatype, shape, bytes: raw ?? refuse("no data") }
  if (raw !== undefined) refuse("two sorts of data")
  return { name, datatype, shape, bytes: typed(contents, datatype) }
}

type Field = Exclude<keyof InferTensorContents, `$${string}`>

const fields: { readonly [datatype: string]: Field } = {
  BOOL: "boolContents",
  INT8: "intContents",
  INT16: "intContents",
  INT32: "intContents",
  INT64: "int64Contents",
  UINT8: "uintContents",
  UINT16: "uintContents",
  UINT32: "uintContents",
  UINT64: "uint64Contents",
  FP32: "fp32Contents",
  FP64: "fp64Contents",
  BYTES: "bytesContents",
}

const allFields = new Set(Object.values(fields))

const typed = (contents: InferTensorContents, datatype: string): Uint8Array => {
  const own = Object.hasOwn(fields, datatype) ? fields[datatype] : undefined
  for (const field of allFields) if (field !== own && contents[field].length > 0) refuse("contents of another datatype")
  const elements: ReadonlyArray<Element> = own === undefined ? [] : contents[own]
  const range = ranges.get(datatype)
  const fits = (element: Element) =>
    range === undefined || (BigInt(Number(element)) >= range[0] && BigInt(Number(element)) <= range[1])
  if (/^U?INT(8|16)$/.test(datatype) && !elements.every(fits)) refuse("out of range")
  return bytesOf({ name: "", datatype, shape: [], elements })
}

const checkParameter = (name: string, { parameterChoice: { case: type, value } }: InferParameter): void => {
  const finalResponse = name === "triton_enable_empty_final_response"
  if (name.startsWith("triton_") && !finalResponse) refuse("reserved")
  const among = (...types: ReadonlyArray<typeof type>) => types.includes(type) || refuse(`type of ${name}`)
  if (type === undefined) refuse("no value")
  if (name === "sequence_start" || name === "sequence_end" || finalResponse) among("boolParam")
  if (name === "sequence_id") among("int64Param", "stringParam")
  if (name === "priority") among("int64Param", "uint64Param")
  if (name === "timeout") among("int64Param")
  if ((name === "priority" || name === "timeout") && typeof value === "bigint" && value < 0n) refuse("negative")
  if (name === "sequence_id" && typeof value === "string" && Buffer.byteLength(value) > 128) refuse("too long")
}
