/**
 * gRPC server reflection, v1 and v1alpha: lists services and the descriptors of their files, for tools such as grpcurl
 * and grpcui. All responses are constant. There are no extensions.
 *
 * A query without a result gets an error response, and the stream goes on.
 */
import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf"
import { type DescriptorProto, type EnumDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt"
import type { ConnectRouter } from "@connectrpc/connect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { ServerReflection } from "@nereid/protocol/reflection"
import { ServerReflection as ServerReflectionAlpha } from "@nereid/protocol/reflection_v1alpha"
import * as BinaryRequests from "./BinaryRequests.ts"

/** Adds both versions to the router. They describe the services that are given, and themselves; until a stop begins. */
export const route = (router: ConnectRouter, described: ReadonlyArray<DescService>, stopping: AbortSignal): void => {
  const services = [...described, ServerReflection, ServerReflectionAlpha]
  const names = services.map(({ typeName }) => ({ name: typeName }))
  const index = makeIndex(services)

  const lookup = ({ case: kind, value }: ReflectionQuery): ReflectionResult => {
    switch (kind) {
      case "listServices":
        return { case: "listServicesResponse", value: { service: names } }
      case "fileByFilename":
        return fileResult(index.files.get(value), `File not found: '${value}'`)
      case "fileContainingSymbol":
        return fileResult(index.symbols.get(value), `Symbol not found: '${value}'`)
      case "fileContainingExtension":
        return notFound(`Extension not found: ${value.extensionNumber} of '${value.containingType}'`)
      case "allExtensionNumbersOfType":
        return index.messages.has(value)
          ? { case: "allExtensionNumbersResponse", value: { baseTypeName: value } }
          : notFound(`Type not found: '${value}'`)
      default:
        return failed(GrpcCode.INVALID_ARGUMENT, "the reflection request has no message_request")
    }
  }
  const respond = async function* <R extends Request>(requests: AsyncIterable<R>) {
    for await (const request of untilStopped(stopping, requests)) {
      yield { validHost: request.host, originalRequest: request, messageResponse: lookup(request.messageRequest) }
    }
  }
  router.service(BinaryRequests.undecoded(ServerReflection), { serverReflectionInfo: (requests) => respond(requests) })
  router.service(BinaryRequests.undecoded(ServerReflectionAlpha), {
    serverReflectionInfo: (requests) => respond(requests),
  })
}

/** A stop waits for no question that might still come. */
const untilStopped = async function* <R>(stopping: AbortSignal, requests: AsyncIterable<R>) {
  const stop = Promise.withResolvers<{ readonly done: true }>()
  const onStop = () => stop.resolve({ done: true })
  stopping.addEventListener("abort", onStop, { once: true })
  try {
    if (stopping.aborted) return
    const each = requests[Symbol.asyncIterator]()
    for (;;) {
      const next = await Promise.race([each.next(), stop.promise])
      if (next.done === true) return
      yield next.value
    }
  } finally {
    stopping.removeEventListener("abort", onStop)
  }
}

/** Request of both versions. */
interface Request {
  readonly host: string
  readonly messageRequest: ReflectionQuery
}

type ReflectionQuery =
  | { readonly case: "listServices" | "fileByFilename" | "fileContainingSymbol"; readonly value: string }
  | { readonly case: "allExtensionNumbersOfType"; readonly value: string }
  | {
      readonly case: "fileContainingExtension"
      readonly value: { readonly containingType: string; readonly extensionNumber: number }
    }
  | { readonly case: undefined; readonly value?: undefined }

type ReflectionResult =
  | { readonly case: "listServicesResponse"; readonly value: { service: Array<{ name: string }> } }
  | { readonly case: "fileDescriptorResponse"; readonly value: { fileDescriptorProto: Array<Uint8Array> } }
  | { readonly case: "allExtensionNumbersResponse"; readonly value: { baseTypeName: string } }
  | { readonly case: "errorResponse"; readonly value: { errorCode: number; errorMessage: string } }

interface Index {
  /** Files by their import path. */
  readonly files: ReadonlyMap<string, DescFile>
  /** The file that declares a full name. */
  readonly symbols: ReadonlyMap<string, DescFile>
  readonly messages: ReadonlySet<string>
}

const makeIndex = (services: ReadonlyArray<DescService>): Index => {
  const files = new Map(services.flatMap(({ file }) => withImports(file)).map((file) => [file.proto.name, file]))
  const symbols = new Map<string, DescFile>()
  const messages = new Set<string>()
  for (const file of files.values()) {
    const add = (scope: string, declared: ReadonlyArray<{ readonly name: string }>) => {
      for (const { name } of declared) symbols.set(`${scope}.${name}`, file)
    }
    const addEnums = (scope: string, enums: ReadonlyArray<EnumDescriptorProto>) => {
      add(scope, enums)
      // In protobuf, values are in the scope of the enum's parent.
      for (const { value } of enums) add(scope, value)
    }
    const addMessages = (scope: string, types: ReadonlyArray<DescriptorProto>) => {
      add(scope, types)
      for (const { name, field, oneofDecl, enumType, nestedType } of types) {
        const typeName = `${scope}.${name}`
        messages.add(typeName)
        add(typeName, field)
        add(typeName, oneofDecl)
        addEnums(typeName, enumType)
        addMessages(typeName, nestedType)
      }
    }
    // Reads the proto and not its descriptors, which lack the entry messages of maps.
    const { package: scope, service, enumType, messageType } = file.proto
    add(scope, service)
    for (const { name, method } of service) add(`${scope}.${name}`, method)
    addEnums(scope, enumType)
    addMessages(scope, messageType)
  }
  return { files, symbols, messages }
}

/** The requested file first: some clients use only the first one, and all need the imports too. */
const withImports = (file: DescFile): ReadonlyArray<DescFile> => [
  ...new Set([file, ...file.dependencies.flatMap(withImports)]),
]

const fileResult = (file: DescFile | undefined, message: string): ReflectionResult => {
  if (file === undefined) return notFound(message)
  const fileDescriptorProto = withImports(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto))
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } }
}

const notFound = (message: string): ReflectionResult => failed(GrpcCode.NOT_FOUND, message)

const failed = (errorCode: number, errorMessage: string): ReflectionResult => ({
  case: "errorResponse",
  value: { errorCode, errorMessage },
})
