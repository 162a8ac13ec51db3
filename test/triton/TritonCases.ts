/** The conformance cases that can run against Triton, and their differences there. */
import { compare as compareGrpcCase } from "../conformance/GrpcComparison.ts"
import { compare as compareHttpCase } from "../conformance/HttpComparison.ts"
import { compareGrpc, compareHttp, compareStream } from "../conformance/ResponseComparison.ts"
import type { GrpcCase, HttpCase, InferCase } from "../conformance/Case.ts"
import { binary } from "../conformance/cases/binary.ts"
import { datatypes } from "../conformance/cases/datatypes.ts"
import { extensionsGrpc, extensionsHttp } from "../conformance/cases/extensions.ts"
import { generate } from "../conformance/cases/generate.ts"
import { grpc } from "../conformance/cases/grpc.ts"
import { grpcFrames } from "../conformance/cases/grpcFrames.ts"
import { json } from "../conformance/cases/json.ts"
import { jsonElements } from "../conformance/cases/jsonElements.ts"
import { models } from "../conformance/cases/models.ts"
import { outputs } from "../conformance/cases/outputs.ts"
import { routes } from "../conformance/cases/routes.ts"
import { decoupledHttp, streams } from "../conformance/cases/streams.ts"
import { traceGrpc, traceHttp } from "../conformance/cases/trace.ts"
import { transport } from "../conformance/cases/transport.ts"
import { validation } from "../conformance/cases/validation.ts"
import { GrpcConnection } from "../conformance/GrpcConnection.ts"
import { encode as encodeGrpc } from "../conformance/GrpcEncoding.ts"
import { HttpConnection } from "../conformance/HttpConnection.ts"
import { encode as encodeHttp } from "../conformance/HttpEncoding.ts"
import { possible } from "../conformance/InferRequest.ts"
import * as Models from "../conformance/Models.ts"
import { names } from "./TritonModels.ts"

export interface Ports {
  readonly http: number
  readonly grpc: number
}

/** A case, and how it runs against a server. */
export interface TritonCase {
  readonly name: string
  /** One line for each difference. */
  readonly run: (ports: Ports) => Promise<ReadonlyArray<string>>
}

/** Names of models that only Nereid has. */
const others = Models.models.flatMap((model) =>
  "definition" in model && !names.has(model.definition.name) ? [model.definition.name] : [],
)

const ofOthers = new RegExp(`(?<![\\w-])(${[...others, "stopped"].join("|")})(?![\\w-])`)

/** Whether the bytes of a request name a model that only Nereid has. */
const isOfOther = (parts: ReadonlyArray<string | Uint8Array>): boolean =>
  parts.some((part) => ofOthers.test(typeof part === "string" ? part : Buffer.from(part).toString("latin1")))

const withHttp = async <A>({ http }: Ports, use: (connection: HttpConnection) => Promise<A>): Promise<A> => {
  const connection = await HttpConnection.open(http)
  try {
    return await use(connection)
  } finally {
    connection.close()
  }
}

const withGrpc = async <A>({ grpc }: Ports, use: (connection: GrpcConnection) => Promise<A>): Promise<A> => {
  const connection = await GrpcConnection.open(grpc)
  try {
    return await use(connection)
  } finally {
    connection.close()
  }
}

/** Triton has no tags. */
const withoutTags = (lines: ReadonlyArray<string>) =>
  lines.filter((line) => !/^(?:tag |nereid-)/.test(line) && line.trim() !== "")

const inferCase = ({ name, request, expected, as = possible(request) }: InferCase): ReadonlyArray<TritonCase> =>
  as.map((encoding) => ({
    name: `${name} (${encoding})`,
    run: async (ports) => {
      switch (encoding) {
        case "gRPC stream": {
          const call = { method: "ModelStreamInfer", chunks: [encodeGrpc(request, encoding)] }
          return withoutTags(compareStream(request, expected, await withGrpc(ports, (grpc) => grpc.call(call))))
        }
        case "gRPC raw":
        case "gRPC contents": {
          const call = { chunks: [encodeGrpc(request, encoding)] }
          return withoutTags(compareGrpc(request, expected, await withGrpc(ports, (grpc) => grpc.call(call))))
        }
        default:
          return withoutTags(
            compareHttp(
              request,
              expected,
              await withHttp(ports, (http) => http.request(encodeHttp(request, encoding))),
            ),
          )
      }
    },
  }))

const httpCase = ({ name, steps }: HttpCase): TritonCase => ({
  name,
  run: (ports) =>
    withHttp(ports, async (connection) => {
      const found: Array<string> = []
      for (const [request, expected] of steps) {
        const raw = typeof request === "string" || request instanceof Uint8Array
        found.push(...compareHttpCase(await (raw ? connection.send(request) : connection.request(request)), expected))
      }
      return withoutTags(found)
    }),
})

const grpcCase = (one: GrpcCase): TritonCase => ({
  name: one.name,
  run: (ports) =>
    withGrpc(ports, async (connection) => withoutTags(compareGrpcCase(one, await connection.call(one.call)))),
})

const isNormal = ({ server, port }: { readonly server?: string; readonly port?: string }): boolean =>
  server === undefined && (port === undefined || port === "http")

export const cases: ReadonlyArray<TritonCase> = [
  ...[...datatypes, ...validation, ...models, ...outputs]
    .filter((one) => isNormal(one) && !isOfOther([one.request.model]))
    .flatMap(inferCase),
  ...[...routes, ...json, ...jsonElements, ...binary, ...transport, ...extensionsHttp, ...decoupledHttp]
    .concat(traceHttp, generate)
    .filter(
      (one) =>
        isNormal(one) &&
        !isOfOther(
          one.steps.flatMap(([request]) =>
            typeof request === "string" || request instanceof Uint8Array
              ? [request]
              : [request.path, request.body ?? ""],
          ),
        ),
    )
    .map(httpCase),
  ...[...grpc, ...grpcFrames, ...streams, ...extensionsGrpc, ...traceGrpc]
    .filter((one) => isNormal(one) && !isOfOther(one.call.chunks))
    .map(grpcCase),
]

/** The differences of a case. A response that never comes, or is unreadable, is one of them. */
export const differences = async ({ run }: TritonCase, ports: Ports): Promise<ReadonlyArray<string>> => {
  try {
    return await run(ports)
  } catch (error) {
    return [String(error)]
  }
}
