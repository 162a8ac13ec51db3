/**
 * Clients of models that another server runs: Nereid, or any server of the v2 protocol. `layer` provides the model's
 * service; `connect` returns a client with promises. Both check every response against the declaration.
 */
import * as dns from "node:dns/promises"
import { Effect, Layer, Result, type Scope } from "effect"
import type { Transport } from "@connectrpc/connect"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { GivenOptions } from "@nereid/core/internal/model/GivenOptions"
import { inference } from "@nereid/core/internal/call/EffectCalls"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { Channel, ServerChannel } from "./channel/Channel.ts"
import {
  type ClientOptions as ConnectionOptions,
  type ClientSettings,
  settings as readConnection,
} from "./channel/ClientOptions.ts"
import * as DetectedChannel from "./channel/DetectedChannel.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { InvalidUrl } from "@nereid/core/internal/wire/ServerUrl"
import * as GrpcChannel from "./grpc/GrpcChannel.ts"
import { GrpcConnection } from "./grpc/GrpcConnection.ts"
import * as GrpcTransport from "./grpc/GrpcTransport.ts"
import * as HttpChannel from "./http/HttpChannel.ts"
import { open, type PromiseClientOf } from "./remote/PromiseClient.ts"
import * as RemoteModel from "./remote/RemoteModel.ts"
import { EffectMetrics } from "./replicas/EffectMetrics.ts"
import * as RepeatingChannel from "./replicas/RepeatingChannel.ts"
import * as ReplicaChannel from "./replicas/ReplicaChannel.ts"
import {
  type ReplicatedOptions as ClientOptions,
  type ReplicatedSettings,
  settings as read,
} from "./replicas/ReplicatedOptions.ts"
import * as SpreadChannel from "./replicas/SpreadChannel.ts"
import * as Verification from "./inspection/Verification.ts"

export { InvalidUrl }
export type { PromiseCallOptions } from "@nereid/core/internal/call/PromiseCall"
export { ContractMismatch, type Difference } from "@nereid/core/internal/contract/ContractDifference"
export type { PromiseClient, PromiseClientOf, PromiseSessions } from "./remote/PromiseClient.ts"
export type { PromiseSession } from "@nereid/core/internal/call/PromiseSession"
export type { TlsOptions } from "./channel/ClientOptions.ts"
export type {
  EjectionOptions,
  HealthOptions,
  HedgeOptions,
  ReplicaOptions,
  ReplicatedOptions as ClientOptions,
  RetryBudgetOptions,
} from "./replicas/ReplicatedOptions.ts"
export type { VerificationError } from "./inspection/Verification.ts"

/**
 * Provides the model that the server at `url` runs:
 *
 * ```ts
 * program.pipe(Effect.provide(Client.layer(Sentiment, { url: "grpc://models:8001" })))
 * ```
 *
 * The client connects at the first call, and reconnects after a connection is lost. Calls fail with the errors of a
 * local model, and with Unavailable if the server cannot be reached. Interrupting a call cancels it on the server.
 *
 * With `verify: true`, the layer first compares the declaration with the server's metadata. The layer fails with a
 * ContractMismatch that names every difference, or with the InferenceError of an unreachable server or unready model.
 * A URL that is not the URL of a server is an InvalidUrl.
 * @throws TypeError if another option is invalid
 */
export const layer = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared,
  const Options extends ClientOptions,
>(
  model: ModelClass<Self, N, I, O, P>,
  options: GivenOptions<Options, ClientOptions>,
): Layer.Layer<Self, InvalidUrl | Verification.Errors<Options>> => {
  const settings = read(options)
  const layer = Layer.effect(
    model,
    Effect.map(remote(model.definition, settings), (running) => inference(model.definition, running)),
  )
  // Without verification, only an invalid URL fails.
  return layer as Layer.Layer<Self, InvalidUrl | Verification.Errors<Options>>
}

/**
 * Connects to a model, without Effect:
 *
 * ```ts
 * await using sentiment = await Client.connect(Sentiment, { url: "http://models:8000" })
 * const { CLASS } = await sentiment.infer({ TEXT: "a great movie" })
 * ```
 *
 * Rejects with an InvalidUrl, or with a TypeError if another option is invalid. The client connects at the first call.
 * With `verify: true` it connects at once, and rejects with the errors of `layer`.
 */
export const connect = async <Self, N extends string, I extends Fields, O extends Fields, P extends Declared>(
  model: ModelClass<Self, N, I, O, P>,
  options: ClientOptions,
): Promise<PromiseClientOf<I, O, P>> => {
  const settings = read(options)
  return open(model.definition, remote(model.definition, settings))
}

/** Transport for clients of Connect, with a `close` that ends its connection. */
export interface ClosableTransport extends Transport, AsyncDisposable {
  readonly close: () => Promise<void>
}

/**
 * Makes a transport for all other unary RPCs, such as metadata and statistics, with Connect's typed client:
 *
 * ```ts
 * const server = createClient(GRPCInferenceService, Client.transport({ url: "grpc://models:8001" }))
 * const { version } = await server.serverMetadata({})
 * ```
 * @throws InvalidUrl if the URL is not the URL of a server, or not for gRPC; a URL without a scheme is
 * @throws TypeError if another option is invalid
 */
export const transport = (
  options: Pick<ConnectionOptions, "url" | "headers" | "tls" | "connectTimeout" | "maxResponseSize">,
): ClosableTransport => {
  const settings = Result.getOrThrow(readConnection(options, "grpc"))
  if (settings.endpoint.protocol !== "grpc") {
    const message = `A transport needs a URL that begins with grpc:// or grpcs://, but ${options.url} was given`
    throw new InvalidUrl({ url: options.url, message })
  }
  const connection = new GrpcConnection(settings)
  const close = () => connection.close()
  return { ...GrpcTransport.make(connection), close, [Symbol.asyncDispose]: close }
}

const remote = (
  definition: Definition<Fields, Fields>,
  read: Result.Result<ReplicatedSettings, InvalidUrl>,
): Effect.Effect<RunningModel, InvalidUrl | Verification.VerificationError, Scope.Scope> =>
  Effect.gen(function* () {
    const settings = yield* Effect.fromResult(read)
    if (settings.verify) yield* verify(definition, settings)
    const target = ServerUrl.address(settings.endpoint)
    return yield* RemoteModel.make(definition, yield* channelOf(definition, settings), { ...settings, target })
  })

/** The channel to a server, or to all of its replicas. */
const channelOf = (
  { name }: Definition<Fields, Fields>,
  { replicas, ...connection }: ReplicatedSettings,
): Effect.Effect<Channel> =>
  Effect.gen(function* () {
    const connections = replicas?.connections ?? 1
    const known = (settings: ClientSettings) => channel(settings, connections)
    const detected = yield* DetectedChannel.opener(known)
    const open = (settings: ClientSettings) => (settings.endpoint.protocol === undefined ? detected : known)(settings)
    if (replicas === undefined) return RepeatingChannel.make(open(connection))
    const metrics = new EffectMetrics(name, yield* Effect.context<never>())
    return yield* ReplicaChannel.make({ metrics, connection, settings: replicas, open, lookup })
  })

const channel = (settings: ClientSettings, connections: number): ServerChannel => {
  if (settings.endpoint.protocol !== "grpc") return HttpChannel.make(settings)
  const first = GrpcChannel.make(settings)
  if (connections === 1) return first
  return SpreadChannel.make(
    first,
    Array.from({ length: connections - 1 }, () => GrpcChannel.make(settings)),
  )
}

/** Verifies the first replica that can be reached. */
const verify = (
  definition: Definition<Fields, Fields>,
  { replicas, ...connection }: ReplicatedSettings,
): Effect.Effect<void, Verification.VerificationError> => {
  const endpoints = replicas?.targets._tag === "List" ? replicas.targets.servers : [connection.endpoint]
  const [first, ...others] = endpoints.map((endpoint) => Verification.check(definition, { ...connection, endpoint }))
  return others.reduce((check, other) => Effect.catchTag(check, "Unavailable", () => other), first ?? Effect.void)
}

/** As other programs of the system look up names. */
const lookup = async (host: string): Promise<ReadonlyArray<string>> =>
  (await dns.lookup(host, { all: true })).map(({ address }) => address)
