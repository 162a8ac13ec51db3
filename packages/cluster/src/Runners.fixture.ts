/**
 * Several runners in this process, over sockets of the loopback interface, with the SQL storage of Effect's cluster in
 * one SQLite database. Each runner stops for itself.
 */
import { type Context, Effect, Exit, Layer, Option, Scope } from "effect"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import type { Sharding } from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SocketRunner from "effect/cluster/SocketRunner"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import { SocketServer } from "effect/socket/SocketServer"
import type { SqlClient } from "effect/sql/SqlClient"
import { layerClientProtocol } from "@effect/platform-node-shared/NodeClusterSocket"
import * as NodeSocketServer from "@effect/platform-node-shared/NodeSocketServer"

/** Intervals that let a test see a move within a second or two. */
const quick: Partial<ShardingConfig.ShardingConfig["Service"]> = {
  shardsPerGroup: 20,
  refreshAssignmentsInterval: 100,
  entityMessagePollInterval: 200,
  sendRetryInterval: 20,
  entityTerminationTimeout: 5000,
}

/** A runner on a free port, with the services of a cluster. */
export const sharding = (
  config: Partial<ShardingConfig.ShardingConfig["Service"]> = {},
): Layer.Layer<Sharding, never, SqlClient> => {
  const settings = Layer.unwrap(
    Effect.map(SocketServer, ({ address }) => {
      if (address._tag === "UnixPathAddress") throw new Error("expected a port")
      const runner = RunnerAddress.make("127.0.0.1", address.port)
      return ShardingConfig.layer({ ...quick, ...config, runnerAddress: Option.some(runner) })
    }),
  )
  return SocketRunner.layer.pipe(
    Layer.provide(RunnerHealth.layerPing.pipe(Layer.provide(Runners.layerRpc), Layer.provide(layerClientProtocol))),
    Layer.provide(layerClientProtocol),
    Layer.provide(Layer.orDie(SqlRunnerStorage.layer)),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(RpcSerialization.layerSchemaBinary()),
    Layer.provideMerge(settings),
    Layer.provide(Layer.orDie(NodeSocketServer.layer({ host: "127.0.0.1", port: 0 }))),
  )
}

/** A runner with its services, until it stops. */
export interface Runner<Services> {
  readonly context: Context.Context<Services>
  /** Stops it as SIGTERM stops a process. */
  readonly stop: Effect.Effect<void>
}

export const start = Effect.fnUntraced(function* <A, E, R>(layer: Layer.Layer<A, E, R>) {
  const scope = yield* Scope.fork(yield* Scope.Scope)
  const context = yield* Layer.buildWithScope(Layer.fresh(layer), scope)
  const runner: Runner<A> = { context, stop: Scope.close(scope, Exit.void) }
  return runner
})
