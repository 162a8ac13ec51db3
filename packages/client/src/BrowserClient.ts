/**
 * Clients for browsers, over HTTP with `fetch`. The server must allow the page's origin (`cors`). For Node, Client.ts
 * also has gRPC, a connection pool, TLS options and verification.
 */
import { Effect, Layer, Result, type Scope } from "effect"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import { inference } from "@nereid/core/internal/call/EffectCalls"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { InvalidUrl } from "@nereid/core/internal/wire/ServerUrl"
import * as FetchChannel from "./http/FetchChannel.ts"
import { open, type PromiseClientOf } from "./remote/PromiseClient.ts"
import * as RemoteModel from "./remote/RemoteModel.ts"
import * as AttemptMetrics from "./replicas/AttemptMetrics.ts"
import * as RepeatingChannel from "./replicas/RepeatingChannel.ts"
import * as ReplicaChannel from "./replicas/ReplicaChannel.ts"
import {
  type ReplicaOptions,
  type ReplicatedOptions as NodeClientOptions,
  type ReplicatedSettings,
  settings as read,
} from "./replicas/ReplicatedOptions.ts"

export { InvalidUrl }
export type { PromiseCallOptions } from "@nereid/core/internal/call/PromiseCall"
export type { PromiseClient, PromiseClientOf, PromiseSessions } from "./remote/PromiseClient.ts"
export type { PromiseSession } from "@nereid/core/internal/call/PromiseSession"

/**
 * Options of Client.ts that apply to browsers. URLs must be http or https; without a scheme, they are http. Several
 * replicas are a list: a browser cannot look up the addresses of a name.
 */
export type ClientOptions = Pick<
  NodeClientOptions,
  "url" | "timeout" | "version" | "headers" | "maxInFlight" | "maxResponseSize"
> & { readonly replicas?: ReplicaOptions & { readonly connections?: never; readonly lookupInterval?: never } }

/**
 * Provides the model that the server at `url` runs. Calls fail with the errors of a local model, and with Unavailable
 * if the server cannot be reached or does not allow the page's origin. Interrupting a call cancels it on the server.
 * A URL that is not the URL of a server, or that is for gRPC, is an InvalidUrl.
 * @throws TypeError if another option is invalid
 */
export const layer = <Self, N extends string, I extends Fields, O extends Fields, P extends Declared>(
  model: ModelClass<Self, N, I, O, P>,
  options: ClientOptions,
): Layer.Layer<Self, InvalidUrl> => {
  const settings = overHttp(options)
  return Layer.effect(
    model,
    Effect.map(remote(model.definition, settings), (running) => inference(model.definition, running)),
  )
}

/**
 * Connects to a model, without Effect:
 *
 * ```ts
 * const sentiment = await Client.connect(Sentiment, { url: "https://models.example" })
 * const { CLASS } = await sentiment.infer({ TEXT: "a great movie" })
 * ```
 *
 * Rejects with an InvalidUrl, or with a TypeError if another option is invalid.
 */
export const connect = async <Self, N extends string, I extends Fields, O extends Fields, P extends Declared>(
  model: ModelClass<Self, N, I, O, P>,
  options: ClientOptions,
): Promise<PromiseClientOf<I, O, P>> => {
  const settings = overHttp(options)
  return open(model.definition, remote(model.definition, settings))
}

const overHttp = (options: ClientOptions): Result.Result<ReplicatedSettings, InvalidUrl> =>
  Result.flatMap(read(options, "http"), (settings) => {
    const targets = settings.replicas?.targets
    if (targets?._tag === "Name") return refuse(options.url, "URLs without dns, because it cannot look up addresses")
    const endpoints = targets?.servers ?? [settings.endpoint]
    return endpoints.every(({ protocol }) => protocol === "http")
      ? Result.succeed(settings)
      : refuse(options.url, "a URL that begins with http:// or https://")
  })

const refuse = (given: string | ReadonlyArray<string>, needed: string) => {
  const url = typeof given === "string" ? given : given.join(", ")
  return Result.fail(new InvalidUrl({ url, message: `A browser needs ${needed}, but ${url} was given` }))
}

const remote = (
  definition: Definition<Fields, Fields>,
  read: Result.Result<ReplicatedSettings, InvalidUrl>,
): Effect.Effect<RunningModel, InvalidUrl, Scope.Scope> =>
  Effect.gen(function* () {
    const { replicas, ...connection } = yield* Effect.fromResult(read)
    const channel =
      replicas === undefined
        ? RepeatingChannel.make(FetchChannel.make(connection))
        : yield* ReplicaChannel.make({
            metrics: AttemptMetrics.none,
            connection,
            settings: replicas,
            open: FetchChannel.make,
          })
    const target = ServerUrl.address(connection.endpoint)
    return yield* RemoteModel.make(definition, channel, { ...connection, target })
  })
