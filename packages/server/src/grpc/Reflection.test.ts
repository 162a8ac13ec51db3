/**
 * Server reflection over a real socket, with the requests of grpcurl. The test builds descriptors from the responses
 * alone.
 */
import { createFileRegistry, create, equals, fromBinary } from "@bufbuild/protobuf"
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt"
import { createClient, type Transport } from "@connectrpc/connect"
import { createGrpcTransport } from "@connectrpc/connect-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Health } from "@nereid/protocol/health"
import { ServerReflection } from "@nereid/protocol/reflection"
import { ServerReflection as ServerReflectionAlpha } from "@nereid/protocol/reflection_v1alpha"
import { connection } from "./GrpcClient.fixture.ts"
import { serve } from "./GrpcServer.fixture.ts"

type Query =
  | { case: "listServices" | "fileByFilename" | "fileContainingSymbol" | "allExtensionNumbersOfType"; value: string }
  | { case: "fileContainingExtension"; value: { containingType: string; extensionNumber: number } }
  | { case: undefined }

const versions = {
  v1: (transport: Transport) => createClient(ServerReflection, transport),
  v1alpha: (transport: Transport) => createClient(ServerReflectionAlpha, transport),
}

const services = [GRPCInferenceService, Health, ServerReflection, ServerReflectionAlpha]

/** The answers to all questions, on one stream. */
const query = (client: ReturnType<(typeof versions)["v1" | "v1alpha"]>, ...queries: ReadonlyArray<Query>) =>
  Effect.promise(async () => {
    const requests = async function* () {
      for (const messageRequest of queries) yield { host: "here", messageRequest }
    }
    const responses: Array<{ case?: string | undefined; value?: unknown }> = []
    for await (const { validHost, messageResponse } of client.serverReflectionInfo(requests())) {
      expect(validHost).toBe("here")
      responses.push(messageResponse)
    }
    return responses
  })

const filesOf = ({ value }: { value?: unknown }) =>
  value !== null &&
  typeof value === "object" &&
  "fileDescriptorProto" in value &&
  Array.isArray(value.fileDescriptorProto)
    ? value.fileDescriptorProto.map((bytes: Uint8Array) => fromBinary(FileDescriptorProtoSchema, bytes))
    : []

const symbol = (value: string): Query => ({ case: "fileContainingSymbol", value })

const failure = (errorCode: number, errorMessage: string) => ({
  case: "errorResponse",
  value: { errorCode, errorMessage },
})

describe.each(Object.entries(versions))("%s", (_, makeClient) => {
  const connect = serve().pipe(
    Effect.flatMap(({ authority }) => connection(authority)),
    Effect.map((shared) => makeClient(createGrpcTransport(shared))),
  )

  it.live("lists the services, and each is described with everything that its file imports", () =>
    Effect.gen(function* () {
      const client = yield* connect
      const [list] = yield* query(client, { case: "listServices", value: "*" })
      const listed = services.map(({ typeName }) => ({ name: typeName }))
      expect(list).toMatchObject({ case: "listServicesResponse", value: { service: listed } })

      const responses = yield* query(client, ...services.map(({ typeName }) => symbol(typeName)))
      for (const [index, response] of responses.entries()) {
        const service = services[index]!
        // Throws where an import is missing.
        const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: filesOf(response).toReversed() }))
        const rebuilt = registry.getService(service.typeName)
        expect(rebuilt?.methods.map(({ name }) => name)).toEqual(service.methods.map(({ name }) => name))
      }
    }),
  )

  it.live.each([
    "inference.GRPCInferenceService.ModelInfer",
    "inference.ModelInferRequest",
    "inference.ModelInferRequest.InferInputTensor",
    "inference.ModelInferRequest.InferInputTensor.datatype",
    "inference.ModelInferRequest.ParametersEntry",
    "inference.InferParameter.parameter_choice",
  ])("the file that declares %s is found", (name) =>
    Effect.gen(function* () {
      const [response] = yield* query(yield* connect, symbol(name))
      expect(filesOf(response!).map((file) => file.name)).toEqual([
        "inference/grpc_service.proto",
        "inference/model_config.proto",
      ])
    }),
  )

  it.live.each<readonly [name: string, path: string]>([
    ["inference.DataType", "inference/model_config.proto"],
    ["inference.TYPE_FP32", "inference/model_config.proto"],
    ["inference.ModelInstanceGroup.KIND_CPU", "inference/model_config.proto"],
    ["grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"],
    ["grpc.health.v1.HealthCheckResponse.NOT_SERVING", "grpc/health/v1/health.proto"],
  ])("%s is declared in %s", ([name, path]) =>
    Effect.gen(function* () {
      const [response] = yield* query(yield* connect, symbol(name))
      expect(filesOf(response!).map((file) => file.name)).toEqual([path])
    }),
  )

  it.live("a file is found by its path, and is what the server itself was built from", () =>
    Effect.gen(function* () {
      const paths = services.map(({ file }) => file.proto.name)
      const responses = yield* query(
        yield* connect,
        ...paths.map((value): Query => ({ case: "fileByFilename", value })),
      )
      for (const [index, response] of responses.entries()) {
        expect(equals(FileDescriptorProtoSchema, filesOf(response)[0]!, services[index]!.file.proto)).toBe(true)
      }
    }),
  )

  it.live("a question without an answer gets an error, and the stream goes on", () =>
    Effect.gen(function* () {
      const responses = yield* query(
        yield* connect,
        symbol("inference.Nothing"),
        symbol(""),
        symbol("grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING"),
        { case: "fileByFilename", value: "onnx/onnx.proto" },
        { case: "fileContainingExtension", value: { containingType: "inference.ModelConfig", extensionNumber: 7 } },
        { case: "allExtensionNumbersOfType", value: "inference.Nothing" },
        { case: undefined },
        { case: "allExtensionNumbersOfType", value: "inference.ModelConfig" },
        { case: "listServices", value: "" },
      )
      expect(responses).toMatchObject([
        failure(5, "Symbol not found: 'inference.Nothing'"),
        failure(5, "Symbol not found: ''"),
        failure(5, "Symbol not found: 'grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING'"),
        failure(5, "File not found: 'onnx/onnx.proto'"),
        failure(5, "Extension not found: 7 of 'inference.ModelConfig'"),
        failure(5, "Type not found: 'inference.Nothing'"),
        failure(3, "the reflection request has no message_request"),
        {
          case: "allExtensionNumbersResponse",
          value: { baseTypeName: "inference.ModelConfig", extensionNumber: [] },
        },
        { case: "listServicesResponse" },
      ])
    }),
  )
})
