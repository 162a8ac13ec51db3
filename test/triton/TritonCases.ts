/** The conformance cases that can run against Triton, and their differences there. */
import { compare as compareGrpcCase } from "../conformance/GrpcComparison.ts"
import { compare as compareHttpCase } from "../conformance/HttpComparison.ts"
import { compareGrpc, compareHttp, compareStream } from "../conformance/ResponseComparison.ts"
import type { GrpcCase, HttpCase, InferCase } from "../conformance/Case.ts"
import { binary } from "../conformance/cases/binary.ts"
import { datatypes } from "../conformance/cases/datatypes.ts"
import { ensembles, ensemblesGrpc, ensemblesHttp } from "../conformance/cases/ensembles.ts"
import { extensionsGrpc, extensionsHttp } from "../conformance/cases/extensions.ts"
import { generate } from "../conformance/cases/generate.ts"
import { grpc } from "../conformance/cases/grpc.ts"
import { grpcFrames } from "../conformance/cases/grpcFrames.ts"
import { guardedGrpc, guardedHttp } from "../conformance/cases/guarded.ts"
import { json } from "../conformance/cases/json.ts"
import { jsonElements } from "../conformance/cases/jsonElements.ts"
import { models } from "../conformance/cases/models.ts"
import { outputs } from "../conformance/cases/outputs.ts"
import { routes } from "../conformance/cases/routes.ts"
import { storedStreams } from "../conformance/cases/storedAnswers.ts"
import { storedConfigsGrpc, storedConfigsHttp } from "../conformance/cases/storedConfigs.ts"
import { storedEnsemblesGrpc, storedEnsemblesHttp } from "../conformance/cases/storedEnsembles.ts"
import { storedModels } from "../conformance/cases/storedModels.ts"
import { storedGrpc, storedHttp } from "../conformance/cases/storedRepository.ts"
import { storedScheduling, storedSchedulingGrpc, storedSchedulingHttp } from "../conformance/cases/storedScheduling.ts"
import { decoupledHttp, streams } from "../conformance/cases/streams.ts"
import { traceGrpc, traceHttp } from "../conformance/cases/trace.ts"
import { transport } from "../conformance/cases/transport.ts"
import { validation } from "../conformance/cases/validation.ts"
import { GrpcConnection } from "../conformance/GrpcConnection.ts"
import { encode as encodeGrpc } from "../conformance/GrpcEncoding.ts"
import { HttpConnection } from "../conformance/HttpConnection.ts"
import { encode as encodeHttp } from "../conformance/HttpEncoding.ts"
import { possible } from "../conformance/InferRequest.ts"
import type { Ports, ServerName } from "../conformance/ServerUnderTest.ts"
import { broken } from "../conformance/StoredRefusals.ts"
import { setups } from "./TritonSetups.ts"

/** A case, and how it runs against a server. */
export interface TritonCase {
  readonly name: string
  readonly server: ServerName
  /** Why it cannot run; undefined if it can. */
  readonly reason: string | undefined
  /** One line for each difference. */
  readonly run: (ports: Ports) => Promise<ReadonlyArray<string>>
}

/** A case of the index, with the name of a model that does not load. */
const notLoaded = /^(?:RepositoryIndex: )?(\w+) is not, and says why$/

const noFlag: Readonly<Partial<Record<ServerName, string>>> = {
  small: "limits of sizes, which this Triton has no flags for",
}

const onnxFile = "the contents of an ONNX file: this Triton has no ONNX Runtime backend"

const newer = "fields of configurations that only newer versions of Triton have"

/** Reasons that are not those of a model, by the name of a case. */
const byName: ReadonlyArray<readonly [RegExp, string]> = [
  [/^text with a NUL|^(?:ModelMetadata|ModelConfig|metadata|config): (?:completed from|a scalar is)/, onnxFile],
  [/^a model that fails with (?:DeadlineExceeded|MalformedRequest|RegionFailed|another)/, "errors of JavaScript"],
  [/^what is no text/, "texts that are declared in code"],
  [/^classes: none of TEXT/, "requests that end this Triton"],
  [/^classes: (?:with a label|one output as)/, "labels that are declared in code"],
  [/^a timeout (?:of "|that passes while)/, "a header of Nereid"],
  [/: (?:floats|ensemble_fields)$|metric_\w+ is not|(?:order|no_version)_metrics is not/, newer],
  [/again: (?:metric_\w+|order_metrics|no_version_metrics)$/, newer],
  [/: a configuration that the file contradicts|: a file of the request that|: a file that is no base64/, onnxFile],
  [/(?:load|Load): a script$/, "a script that needs JavaScript"],
  [/^a page of/, "cross-origin requests, which Triton does not know"],
  [/^a script that (?:throws|answers by (?:nothing|an error))/, "errors of JavaScript"],
]

/** Names of the models of a request: of a path, or of field 1 or 2 of a message. */
const modelsOf = (part: string | Uint8Array, known: Iterable<string>): ReadonlyArray<string> => {
  const text = typeof part === "string" ? part : Buffer.from(part).toString("latin1")
  const inPath = [...text.matchAll(/\/models\/([^/\s]+)/g)].map(([, name = ""]) => name)
  const inMessage = [...known].filter((name) =>
    ["\n", "\u0012"].some((tag) => text.includes(tag + String.fromCharCode(name.length) + name)),
  )
  return [...inPath, ...inMessage]
}

const reasonOf = (
  { name, server = "normal" }: { readonly name: string; readonly server?: ServerName },
  parts: ReadonlyArray<string | Uint8Array>,
): string | undefined => {
  const setup = setups[server]
  if (setup === undefined) return noFlag[server] ?? `a server '${server}'`
  const found = byName.find(([pattern]) => pattern.test(name))
  if (found !== undefined) return found[1]
  // Cases of the index have the name of the model in theirs.
  const [, indexed = ""] = notLoaded.exec(name) ?? []
  for (const model of [indexed, ...parts.flatMap((part) => modelsOf(part, setup.unavailable.keys()))]) {
    const reason = setup.unavailable.get(model)
    if (reason !== undefined) return reason
  }
  return undefined
}

/** Both names of a backend have six letters, so that messages keep their length. */
const inPython = <A extends string | Uint8Array>(bytes: A): A => {
  const replaced = (text: string) => text.replaceAll(/(backend\\?": ?\\?")nereid/g, "$1python")
  // The kind of the argument decides on that of the result.
  return (
    typeof bytes === "string" ? replaced(bytes) : Buffer.from(replaced(Buffer.from(bytes).toString("latin1")), "latin1")
  ) as A
}

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

const inferCase = (one: InferCase): ReadonlyArray<TritonCase> => {
  const { name, request, expected, as = possible(request), server = "normal" } = one
  const reason = reasonOf(one, [`/models/${request.model}`])
  return as.map((encoding) => ({
    name: `${name} (${encoding})`,
    server,
    reason,
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
}

const pythonRequest = (request: HttpCase["steps"][number][0]): HttpCase["steps"][number][0] => {
  if (typeof request === "string" || request instanceof Uint8Array) return inPython(request)
  return request.body === undefined ? request : { ...request, body: inPython(request.body) }
}

const httpCase = (one: HttpCase): TritonCase => ({
  name: one.name,
  server: one.server ?? "normal",
  reason: reasonOf(
    one,
    one.steps.map(([request]) =>
      typeof request === "string" || request instanceof Uint8Array ? request : request.path,
    ),
  ),
  run: (ports) =>
    withHttp({ ...ports, http: ports[one.port ?? "http"] }, async (connection) => {
      const found: Array<string> = []
      for (const [given, expected] of one.steps) {
        const request = pythonRequest(given)
        const raw = typeof request === "string" || request instanceof Uint8Array
        found.push(...compareHttpCase(await (raw ? connection.send(request) : connection.request(request)), expected))
      }
      return withoutTags(found)
    }),
})

const grpcCase = (one: GrpcCase): TritonCase => ({
  name: one.name,
  server: one.server ?? "normal",
  reason: reasonOf(one, one.call.chunks),
  run: (ports) =>
    withGrpc(ports, async (connection) =>
      withoutTags(compareGrpcCase(one, await connection.call({ ...one.call, chunks: one.call.chunks.map(inPython) }))),
    ),
})

const all: ReadonlyArray<TritonCase> = [
  ...[...datatypes, ...validation, ...models, ...outputs, ...storedModels, ...storedScheduling, ...ensembles].flatMap(
    inferCase,
  ),
  ...[...routes, ...json, ...jsonElements, ...binary, ...transport, ...extensionsHttp, ...decoupledHttp]
    .concat(traceHttp, generate, guardedHttp, storedHttp, storedConfigsHttp, storedEnsemblesHttp)
    .concat(storedSchedulingHttp, ensemblesHttp)
    .map(httpCase),
  ...[...grpc, ...grpcFrames, ...streams, ...extensionsGrpc, ...traceGrpc]
    .concat(guardedGrpc, storedGrpc, storedConfigsGrpc, storedEnsemblesGrpc, storedStreams, storedSchedulingGrpc)
    .concat(ensemblesGrpc)
    .map(grpcCase),
]

/** Cases that change what is loaded are the last, and those of statistics before any request the first. */
const order = ({ name }: TritonCase): number => {
  if (/warm-ups are (?:in no statistics|not counted)/.test(name)) return 0
  return /^(?:un)?load\b|^RepositoryModel(?:Load|Unload)/.test(name) ? 2 : 1
}

export const cases: ReadonlyArray<TritonCase> = all.toSorted((a, b) => order(a) - order(b))

/**
 * The differences of a case. A response that never comes, or is unreadable, is one of them. Triton logs some errors
 * without responding with them: `log` returns its log.
 */
export const differences = async (
  { name, run }: TritonCase,
  ports: Ports,
  log: () => string,
): Promise<ReadonlyArray<string>> => {
  const found = await run(ports).catch((error: unknown) => [String(error)])
  const [, indexed = ""] = notLoaded.exec(name) ?? []
  const one = broken[indexed]
  if (one === undefined || found.length === 0) return found
  const lines = log()
    .split("\n")
    .filter((line) => new RegExp(`\\b${indexed}\\b`).test(line))
  const { reason } = one
  const isLogged = lines.some((line) => (reason instanceof RegExp ? reason.test(line) : line.includes(reason)))
  return [
    isLogged
      ? "only its log has the reason"
      : `its log has not the reason ${String(reason)}: ${lines.join(" ").slice(0, 500)}`,
  ]
}
