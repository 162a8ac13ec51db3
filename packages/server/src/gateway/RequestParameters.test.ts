/**
 * Parameters of a request and its headers on their way to a handler, and those of its response on their way back (C21).
 */
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Model, RequestContext, Tensor } from "@nereid/core"
import type { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { inferFrame, modelInfer, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import { inferModel, json } from "../http/HttpInfer.fixture.ts"
import * as Server from "../Server.ts"

/**
 * Answers what its handler knows of its request, bigints as their digits; gives the parameters back with the response.
 */
class Mirror extends Model.Service<Mirror>()("mirror", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { CONTEXT: Tensor.utf8(), OTHER: Tensor.scalar("INT32") },
}) {}

const mirror = Model.each(Mirror, () =>
  Effect.gen(function* () {
    const { setParameter, ...context } = yield* RequestContext
    for (const [name, value] of Object.entries(context.parameters)) yield* setParameter(name, value)
    const printed = JSON.stringify(context, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value))
    return { CONTEXT: printed, OTHER: 1 }
  }),
)

const serve = Effect.fnUntraced(function* (options: Server.ServerOptions = {}) {
  const free = { host: "127.0.0.1", port: 0 }
  const layer = Server.layer([Mirror], { http: free, grpc: free, metrics: false, ...options })
  const context = yield* Layer.build(layer.pipe(Layer.provide(mirror)))
  const { http, grpc } = yield* Effect.provide(Server.Server, context)
  assert(http !== undefined && grpc !== undefined)
  return { http, session: yield* rawSession({ authority: `http://127.0.0.1:${grpc.port}` }) }
})

const inputs = '"inputs":[{"name":"X","datatype":"INT32","shape":[1],"data":[1]}]'

const overHttp = (server: { readonly port: number }, rest = "", headers: Record<string, string> = {}) =>
  Effect.map(inferModel(server, "mirror", `{${inputs}${rest}}`, headers), (response) => ({
    response,
    body: json(response),
  }))

type RequestInit = MessageInitShape<typeof ModelInferRequestSchema>

const request = (overrides: RequestInit = {}): RequestInit => ({
  modelName: "mirror",
  inputs: [{ name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [1] } }],
  ...overrides,
})

type Session = Parameters<typeof rawCall>[0]

const overGrpc = (session: Session, overrides: RequestInit = {}, headers: Record<string, string> = {}) =>
  Effect.map(rawCall(session, { chunks: [inferFrame(request(overrides))], headers }), (response) => {
    if (response.status !== "0") return { status: response.status, message: response.message }
    const { parameters, rawOutputContents } = fromBinary(modelInfer.output, response.body.subarray(5))
    const context: unknown = JSON.parse(new TextDecoder().decode(rawOutputContents[0]?.subarray(4)))
    const choices = Object.entries(parameters).map(
      ([name, { parameterChoice }]) => [name, parameterChoice.case] as const,
    )
    return { context, choices: Object.fromEntries(choices) }
  })

/** The context that the handler has seen, over HTTP. */
const contextOf = (body: unknown): unknown => {
  const text = (body as { readonly outputs: ReadonlyArray<{ readonly data: ReadonlyArray<string> }> }).outputs[0]
    ?.data[0]
  return JSON.parse(text ?? "")
}

it.live("HTTP: parameters of every kind reach the handler and come back with the response", () =>
  Effect.gen(function* () {
    const { http } = yield* serve()
    const parameters = '{"flag":true,"small":-1,"large":18446744073709551615,"double":1.0,"text":"ä","timeout":5}'
    const { response, body } = yield* overHttp(
      http,
      `,"id":"7","parameters":${parameters},"outputs":[{"name":"CONTEXT"}]`,
    )
    expect(response.status).toBe(200)
    expect(contextOf(body)).toEqual({
      id: "7",
      parameters: { flag: true, small: "-1n", large: "18446744073709551615n", double: 1, text: "ä", timeout: "5n" },
      requestedOutputs: ["CONTEXT"],
      rows: 1,
    })
    expect(response.body.toString()).toContain(`"model_version":"1","parameters":${parameters},"outputs"`)
  }),
)

describe.each([true, false])("gRPC, with its own path for unary calls: %s", (fastInference) => {
  it.live("parameters of every kind reach the handler and come back with the response", () =>
    Effect.gen(function* () {
      const { session } = yield* serve({ fastInference })
      const response = yield* overGrpc(session, {
        id: "7",
        parameters: {
          flag: { parameterChoice: { case: "boolParam", value: true } },
          small: { parameterChoice: { case: "int64Param", value: -1n } },
          large: { parameterChoice: { case: "uint64Param", value: 2n ** 64n - 1n } },
          double: { parameterChoice: { case: "doubleParam", value: 1 } },
          text: { parameterChoice: { case: "stringParam", value: "ä" } },
          triton_enable_empty_final_response: { parameterChoice: { case: "boolParam", value: true } },
        },
        outputs: [{ name: "CONTEXT" }],
      })
      expect(response).toEqual({
        context: {
          id: "7",
          parameters: { flag: true, small: "-1n", large: "18446744073709551615n", double: 1, text: "ä" },
          requestedOutputs: ["CONTEXT"],
          rows: 1,
        },
        choices: {
          flag: "boolParam",
          small: "int64Param",
          large: "uint64Param",
          double: "doubleParam",
          text: "stringParam",
        },
      })
    }),
  )

  it.live("metadata that match become parameters, and win over those of the request", () =>
    Effect.gen(function* () {
      const { session } = yield* serve({ fastInference, forwardHeaders: { grpc: "my-.*|USER" } })
      const own = { "x-user": { parameterChoice: { case: "stringParam", value: "forged" } } } as const
      const headers = { "my-trace": "a", "x-user": "ann", other: "b" }
      expect(yield* overGrpc(session, { parameters: own }, headers)).toMatchObject({
        context: { parameters: { "my-trace": "a", "x-user": "ann" } },
      })
    }),
  )

  it.live("reserved metadata are refused where they match, and only there", () =>
    Effect.gen(function* () {
      const { session } = yield* serve({ fastInference, forwardHeaders: { grpc: "o" } })
      for (const name of ["timeout", "triton_other"]) {
        expect(yield* overGrpc(session, {}, { [name]: "1" })).toEqual({
          status: "3",
          message: `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
        })
      }
      const allowed = { triton_grpc_error: "true", sequence_end: "1", other: "c" }
      expect(yield* overGrpc(session, {}, allowed)).toMatchObject({ context: { parameters: { other: "c" } } })
    }),
  )
})

it.live("HTTP: headers that match in any part become parameters, whatever their case, and nothing else does", () =>
  Effect.gen(function* () {
    const { http } = yield* serve({ forwardHeaders: { http: "my-|^x-user$" } })
    const headers = { "My-Trace": "a", "X-USER": "ann", "X-User-Group": "c", timeout: "1" }
    const { body } = yield* overHttp(http, ',"parameters":{"x-user":"forged","own":1}', headers)
    expect(contextOf(body)).toMatchObject({ parameters: { "my-trace": "a", "x-user": "ann", own: "1n" } })
  }),
)

it.live("HTTP: a pattern that begins with (?-i) minds the case", () =>
  Effect.gen(function* () {
    const { http } = yield* serve({ forwardHeaders: { http: "(?-i)My-" } })
    const { body } = yield* overHttp(http, "", { "My-A": "a", "my-b": "b" })
    expect(contextOf(body)).toMatchObject({ parameters: { "my-a": "a" } })
  }),
)

it.live.each(["Sequence_Id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "triton_x"])(
  "HTTP: the header %s cannot be forwarded",
  (name) =>
    Effect.gen(function* () {
      const { http } = yield* serve({ forwardHeaders: { http: ".*" } })
      const { response, body } = yield* overHttp(http, "", { [name]: "1" })
      expect(response.status).toBe(400)
      expect(body).toEqual({ error: `Header '${name}' is reserved for Triton usage and cannot be forwarded.` })
    }),
)

it.live("no header is forwarded by default", () =>
  Effect.gen(function* () {
    const { http, session } = yield* serve()
    const { body } = yield* overHttp(http, "", { timeout: "1", mine: "a" })
    expect(contextOf(body)).toMatchObject({ parameters: {} })
    expect(yield* overGrpc(session, {}, { mine: "a" })).toMatchObject({ context: { parameters: {} } })
  }),
)

it.live.each(["http", "grpc"] as const)("an invalid regular expression for %s fails the start", (port) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(serve({ forwardHeaders: { [port]: "(" } }))
    expect(error._tag).toBe("ServeError")
    expect(error.message).toContain(`forwardHeaders.${port} must be a regular expression, got '('`)
  }),
)
