/**
 * Features that are disabled by default, on a server that enables them: restricted APIs, forwarded headers, pages of
 * other origins.
 */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type GrpcCase, type GrpcExpected, type HttpCase, type HttpExpected, http, rpc } from "../Case.ts"
import { frame, message } from "../GrpcEncoding.ts"
import { toBinary } from "@bufbuild/protobuf"
import { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { type InferRequest, tensor } from "../InferRequest.ts"
import { origin, secret } from "../ServerUnderTest.ts"

const { method } = GRPCInferenceService

const guarded = { server: "guarded", proves: ["C29"] } as const

const refused: HttpExpected = { status: 403, error: `This API is restricted, expecting header '${secret.key}'` }

const restricted: ReadonlyArray<HttpCase> = [
  ...[
    ["/v2/models/stats"],
    ["/v2/models/simple/stats"],
    ["/v2/logging"],
    ["/v2/repository/index", ""],
    ["/v2/logging", "{}"],
    ["/v2/repository/models/x/load", ""],
  ].flatMap(([path = "", body]) => {
    const request = body === undefined ? { path } : { path, body }
    return [
      http(`${path} without the secret`, request, refused, guarded),
      http(`${path} with a wrong secret`, { ...request, headers: { [secret.key]: "Secret" } }, refused, guarded),
      http(
        `${path} with the secret`,
        { ...request, headers: { "ADMIN-KEY": secret.value } },
        { status: path.endsWith("load") ? 503 : 200 },
        guarded,
      ),
    ]
  }),
  http("what is not restricted", { path: "/v2" }, { status: 200 }, guarded),
]

const refusedGrpc: GrpcExpected = {
  code: GrpcCode.UNAVAILABLE,
  message: `This protocol is restricted, expecting header 'triton-grpc-protocol-${secret.key}'`,
  tag: "Unavailable",
}

const withHeaders = (one: GrpcCase, headers: { readonly [name: string]: string }): GrpcCase => ({
  ...one,
  call: { ...one.call, headers },
})

const header = { [`triton-grpc-protocol-${secret.key}`]: secret.value }

const restrictedGrpc: ReadonlyArray<GrpcCase> = [
  rpc("without the secret", method.modelStatistics, {}, refusedGrpc, guarded),
  withHeaders(rpc("with a wrong secret", method.modelStatistics, {}, refusedGrpc, guarded), {
    [`triton-grpc-protocol-${secret.key}`]: "x",
  }),
  withHeaders(rpc("with the secret", method.modelStatistics, {}, { code: 0 }, guarded), header),
  rpc("without the secret", method.repositoryIndex, {}, refusedGrpc, guarded),
  rpc("without the secret", method.logSettings, {}, refusedGrpc, guarded),
  rpc("not restricted", method.serverMetadata, {}, { code: 0 }, guarded),
]

const request: InferRequest = { model: "asked", id: "7", inputs: [tensor("X", "INT32", [1], [1])] }

const body =
  '{"id":"7","parameters":{"b":true,"i":-5,"d":0.5,"s":"x"},"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[1]}]}'

const back = '"parameters":\\{"flag":true,"count":4611686018427387904,"share":0\\.5,"text":"größe"\\}'

const forwarded = (
  name: string,
  headers: { readonly [name: string]: string },
  parameters: string,
  server: "normal" | "guarded" = "guarded",
): HttpCase =>
  http(
    name,
    { path: "/v2/models/asked/infer", headers, body },
    { status: 200, body: new RegExp(`"data":\\["id: 7; ${parameters}"\\]`) },
    { proves: ["C21"], server },
  )

const own = "b: boolean true; d: number 0\\.5; i: bigint -5; s: string x"

const parameters: ReadonlyArray<HttpCase> = [
  forwarded("parameters of four kinds reach the model", {}, own, "normal"),
  http(
    "parameters that a model sets",
    { path: "/v2/models/asked/infer", body },
    { status: 200, body: new RegExp(`"model_version":"1",${back},"outputs"`) },
    { proves: ["C21"] },
  ),
  forwarded(
    "a header that matches is a parameter",
    { "X-Forward-A": "1", Other: "2" },
    `${own}; x-forward-a: string 1`,
  ),
  forwarded("a header is not a parameter without forwarding", { "X-Forward-A": "1" }, own, "normal"),
  http(
    "a header with a reserved name",
    { path: "/v2/models/asked/infer", headers: { priority: "1" }, body },
    { status: 400, error: /Header 'priority' is reserved for Triton usage and cannot be forwarded\./ },
    { proves: ["C21"], server: "guarded" },
  ),
]

const requestFrame = frame(toBinary(ModelInferRequestSchema, message(request, "gRPC raw")))

/** As a reply holds a text: with its length before it. */
const text = (content: string) => {
  const bytes = Buffer.from(content)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(bytes.length)
  return Buffer.concat([length, bytes]).toString("base64")
}

const parametersGrpc: ReadonlyArray<GrpcCase> = (
  [
    ["normal", "1"],
    ["guarded", "1"],
    ["guarded", "1 "],
    ["guarded", " 1"],
    ["guarded", " "],
  ] as const
).map(([server, value]) => ({
  name: `metadata '${value}' of a request, on the server that is ${server}`,
  proves: ["C21"],
  server,
  call: { chunks: [requestFrame], headers: { "x-forward-a": value } },
  expected: {
    code: 0,
    replies: [
      new RegExp(
        text(server === "guarded" ? `id: 7; x-forward-a: string ${value}` : "id: 7").replaceAll("+", String.raw`\+`),
      ),
    ],
  },
}))

const preflight = (from: string, allowed: string | undefined) =>
  http(
    `a page of ${from} asks whether it may`,
    {
      method: "OPTIONS",
      path: "/v2/models/simple/infer",
      headers: { Origin: from, "Access-Control-Request-Method": "POST" },
    },
    allowed === undefined
      ? { status: 405, headers: { "access-control-allow-origin": undefined } }
      : { status: 204, headers: { "access-control-allow-origin": allowed } },
    { server: "guarded" },
  )

const origins: ReadonlyArray<HttpCase> = [
  preflight(origin, origin),
  http(
    "a page of an origin that may ask",
    { path: "/v2", headers: { Origin: origin } },
    { status: 200, headers: { "access-control-allow-origin": origin } },
    { server: "guarded" },
  ),
  http(
    "a page of another origin",
    { path: "/v2", headers: { Origin: "https://evil.example.com" } },
    { status: 200, headers: { "access-control-allow-origin": undefined } },
    { server: "guarded" },
  ),
  http(
    "a page where no origin may ask",
    { path: "/v2", headers: { Origin: origin } },
    { status: 200, headers: { "access-control-allow-origin": undefined } },
  ),
]

const compressed: ReadonlyArray<GrpcCase> = [
  {
    name: "an answer in gzip where the caller takes it",
    proves: ["C29"],
    server: "guarded",
    call: { chunks: [requestFrame], headers: { "grpc-accept-encoding": "gzip" } },
    expected: { code: 0, headers: { "grpc-encoding": "gzip" } },
  },
  {
    name: "an answer as it is where the caller takes no other",
    proves: ["C29"],
    server: "guarded",
    call: { chunks: [requestFrame] },
    expected: { code: 0, headers: { "grpc-encoding": undefined } },
  },
]

export const guardedHttp: ReadonlyArray<HttpCase> = [...restricted, ...parameters, ...origins]

export const guardedGrpc: ReadonlyArray<GrpcCase> = [...restrictedGrpc, ...parametersGrpc, ...compressed]
