/** Metadata, configuration and state of models, over HTTP. */
import type { IncomingHttpHeaders } from "node:http"
import { type DescMessage, fromJson, type MessageShape } from "@bufbuild/protobuf"
import { Effect, Result, type Scope } from "effect"
import { Pool } from "undici"
import { ExecutionFailed, type InferenceError, ModelNotReady, Unavailable } from "@nereid/core/Errors"
import { ModelMetadataResponseSchema, RepositoryIndexResponseSchema } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { connectionLost } from "../channel/ConnectionLost.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import * as HttpStatus from "../http/HttpStatus.ts"
import type { Inspection } from "./InspectionApi.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export const make = (settings: ClientSettings): Effect.Effect<Inspection, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => pool(settings)),
      (pool) => Effect.promise(() => pool.destroy()),
    ),
    (pool) => {
      const { endpoint, headers, version } = settings
      const request = (method: "GET" | "POST", path: string): Effect.Effect<HttpReply, InferenceError> =>
        Effect.tryPromise({
          try: async (signal) => {
            const bodyOptions = method === "GET" ? {} : { body: "{}", headers: { "content-type": "application/json" } }
            const target = `${endpoint.path}/v2/${path}`
            const response = await pool.request({
              ...bodyOptions,
              path: target,
              method,
              signal,
              headers: { ...headers, ...bodyOptions.headers },
            })
            const body = new Uint8Array(await response.body.arrayBuffer())
            return { status: response.statusCode, headers: response.headers, body }
          },
          catch: (error) => new Unavailable({ message: connectionLost(endpoint, false, error) }),
        })
      const model = (name: string, route = "") =>
        request(
          "GET",
          `models/${encodeURIComponent(name)}${version === "" ? "" : `/versions/${encodeURIComponent(version)}`}${route}`,
        )
      return {
        metadata: (name) =>
          Effect.flatMap(model(name), (reply) =>
            Effect.map(document(ModelMetadataResponseSchema, reply, `metadata of '${name}'`), (metadata) => ({
              ...metadata,
              contractJson: contract(reply),
            })),
          ),
        configuration: (name) => Effect.flatMap(model(name, "/config"), configuration),
        ready: (name) =>
          Effect.flatMap(model(name, "/ready"), ({ status, headers, body }) => {
            if (isSuccess(status)) return Effect.void
            if (status >= 500 && status !== 503) return Effect.fail(HttpStatus.failure(status, headers, body))
            return Effect.fail(new ModelNotReady({ message: `model '${name}' is not ready` }))
          }),
        index: Effect.map(
          Effect.flatMap(request("POST", "repository/index"), (reply) =>
            document(RepositoryIndexResponseSchema, reply, "index", "models"),
          ),
          ({ models }) => models,
        ),
      }
    },
  )

interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Uint8Array
}

const pool = ({ endpoint, tls, connectTimeout, maxResponseSize }: ClientSettings): Pool =>
  new Pool(ServerUrl.origin(endpoint), {
    connections: 1,
    allowH2: false,
    maxResponseSize,
    connect: { ...tls, timeout: connectTimeout },
  })

/** The member of Nereid's extension, as text; no member of the message in JSON. */
const contract = ({ body }: HttpReply): string => {
  const json: unknown = JSON.parse(new TextDecoder().decode(body))
  const member: unknown = typeof json === "object" && json !== null && "contract" in json ? json.contract : undefined
  try {
    return JSON.stringify(member) ?? ""
  } catch {
    // Too deep to be written.
    return ""
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

/** `member`: of the message, where the document is the value of that alone. */
const document = <Desc extends DescMessage>(
  schema: Desc,
  { status, headers, body }: HttpReply,
  subject: string,
  member?: string,
): Effect.Effect<MessageShape<Desc>, InferenceError> => {
  if (!isSuccess(status)) return Effect.fail(HttpStatus.failure(status, headers, body))
  return Effect.mapError(
    Effect.fromResult(message(schema, body, member)),
    (problem) => new ExecutionFailed({ message: `cannot decode the server's ${subject}: ${problem}` }),
  )
}

/** Parses a message from JSON, and ignores unknown members. */
const message = <Desc extends DescMessage>(
  schema: Desc,
  body: Uint8Array,
  member?: string,
): Result.Result<MessageShape<Desc>, string> =>
  Result.try({
    try: () => {
      const json = JSON.parse(new TextDecoder().decode(body))
      return fromJson(schema, member === undefined ? json : { [member]: json }, { ignoreUnknownFields: true })
    },
    catch: (error) => errorMessage(error),
  })

/**
 * Reads the configuration of a model with metadata. A refusal or an unusable body means that the server offers none.
 */
const configuration = ({ status, headers, body }: HttpReply): ReturnType<Inspection["configuration"]> => {
  const isRefused = (status >= 400 && status < 500) || status === 501
  if (!isSuccess(status)) {
    const failure = HttpStatus.failure(status, headers, body)
    return isRefused ? Effect.succeed(Result.fail(failure.message)) : Effect.fail(failure)
  }
  const config = message(ModelConfigSchema, body)
  if (Result.isSuccess(config) && config.success.input.length + config.success.output.length === 0) {
    return Effect.succeed(Result.fail("its response is not a configuration"))
  }
  return Effect.succeed(config)
}
