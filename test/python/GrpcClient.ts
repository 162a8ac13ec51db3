/** A client over gRPC: tensors are raw bytes. */
import { type MessageShape, toJson } from "@bufbuild/protobuf"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import type { InferParameter, ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import { failureOf, type GrpcClient } from "../../packages/server/src/grpc/GrpcClient.fixture.ts"
import type { Answer, InferOptions, Parameters, PythonClient } from "./PythonClient.ts"
import type { InferRequest, JsonTensor } from "./PythonRepository.ts"
import * as TensorBytes from "./TensorBytes.ts"

const parameterOf = (value: boolean | number | string) => {
  if (typeof value === "boolean") return { parameterChoice: { case: "boolParam" as const, value } }
  if (typeof value === "string") return { parameterChoice: { case: "stringParam" as const, value } }
  return Number.isInteger(value)
    ? { parameterChoice: { case: "int64Param" as const, value: BigInt(value) } }
    : { parameterChoice: { case: "doubleParam" as const, value } }
}

const parametersOf = (parameters: Parameters) =>
  Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, parameterOf(value)]))

export const requestOf = (
  modelName: string,
  inputs: ReadonlyArray<JsonTensor>,
  { id = "", version = "", parameters = {}, outputs = [] }: InferOptions = {},
): InferRequest => ({
  modelName,
  modelVersion: version,
  id,
  parameters: parametersOf(parameters),
  inputs: inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape: shape.map(BigInt) })),
  outputs: outputs.map((name) => ({ name })),
  rawInputContents: inputs.map(({ datatype, data }) => TensorBytes.encode(datatype, data)),
})

const valueOf = ({ parameterChoice: { value } }: InferParameter) => (typeof value === "bigint" ? Number(value) : value)

const answerOf = ({
  outputs,
  rawOutputContents,
  parameters,
}: MessageShape<typeof ModelInferResponseSchema>): Answer => ({
  status: 0,
  outputs: outputs.map(({ name, datatype, shape }, index) => ({
    name,
    datatype,
    shape: shape.map(Number),
    data: TensorBytes.decode(datatype, rawOutputContents[index] ?? new Uint8Array()),
  })),
  ...(Object.keys(parameters).length > 0 && {
    parameters: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, valueOf(value)])),
  }),
})

/** The message of the error of a call. */
const errorOf = (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(
    () => undefined,
    async (error: unknown) => (await failureOf(Promise.reject(error))).message,
  )

/** Extents are numbers, as they are over HTTP. */
const withNumbers = (key: string, value: unknown): unknown =>
  (key === "dims" || key === "shape") && Array.isArray(value) ? value.map(Number) : value

export const make = (rpc: GrpcClient["rpc"]): PythonClient => ({
  transport: "gRPC",
  infer: async (model, inputs, options = {}) => {
    const { signal } = options
    const call = rpc.modelInfer(requestOf(model, inputs, options), signal && { signal })
    return call.then(answerOf, async (error: unknown) => {
      const { code, message } = await failureOf(Promise.reject(error))
      return { status: code, error: message }
    })
  },
  events: async (model, input, signal) => {
    const seen: Array<string> = []
    const stream = rpc.modelStreamInfer(one(requestOf(model, [input])), signal && { signal })
    for await (const { errorMessage, inferResponse } of stream) {
      const [output] = inferResponse === undefined ? [] : (answerOf(inferResponse).outputs ?? [])
      seen.push(errorMessage === "" ? String(output?.data[0]) : `error: ${errorMessage}`)
    }
    return seen
  },
  index: async () => (await rpc.repositoryIndex({})).models,
  config: async (name) => {
    const { config } = await rpc.modelConfig({ name })
    if (config === undefined) throw new Error(`model '${name}' has no configuration`)
    const options = { useProtoFieldName: true, alwaysEmitImplicit: true }
    return JSON.parse(JSON.stringify(toJson(ModelConfigSchema, config, options), withNumbers))
  },
  load: (modelName, parameters = {}) =>
    errorOf(
      rpc.repositoryModelLoad({
        modelName,
        parameters: Object.fromEntries(
          Object.entries(parameters).map(([name, value]) => [
            name,
            name.startsWith("file:")
              ? { parameterChoice: { case: "bytesParam" as const, value: Buffer.from(value, "base64") } }
              : { parameterChoice: { case: "stringParam" as const, value } },
          ]),
        ),
      }),
    ),
  unload: (modelName) => errorOf(rpc.repositoryModelUnload({ modelName })),
  isReady: async (name) => (await rpc.modelReady({ name })).ready,
  isServerReady: async () => (await rpc.serverReady({})).ready,
})

const one = async function* (request: InferRequest) {
  yield request
}
