/**
 * Sequence models in a cluster of Effect (`effect/cluster`): a call of a sequence, from any process, reaches the runner
 * that owns the sequence, and the sequences of a runner that leaves move to the others. The cluster has the members,
 * shards and locks; a store has the states on their way.
 *
 *   caller ─► M.session() ─► sharding of the cluster ─► owner of the sequence ─► model in that process
 *                                                          └─ leaves: state ─► SequenceStore ─► next owner
 */
import { Context, Duration, Effect, Layer } from "effect"
import * as Entity from "effect/cluster/Entity"
import type { Sharding } from "effect/cluster/Sharding"
import { Unsupported } from "@nereid/core/Errors"
import { inference } from "@nereid/core/internal/call/EffectCalls"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import { requireInteger } from "@nereid/core/internal/model/OptionChecks"
import type { Declared } from "@nereid/core/internal/model/Declared"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import * as ModelLife from "@nereid/core/internal/running/ModelLife"
import { RunningModel, Watcher } from "@nereid/core/internal/running/RunningModel"
import * as RemoteModel from "@nereid/client/internal/remote/RemoteModel"
import { ReplyBudget } from "./owner/KnownSequences.ts"
import * as PartOwner from "./owner/PartOwner.ts"
import * as SequenceEntity from "./protocol/SequenceEntity.ts"
import * as ClusterChannel from "./routing/ClusterChannel.ts"
import { SequenceStore } from "./store/SequenceStore.ts"

/** Options of calls into the cluster. */
export interface CallerOptions {
  /** Timeout of calls that set none; a call waits meanwhile for a runner that owns its sequence. Default 2 minutes. */
  readonly timeout?: Duration.Input
  /** Calls of the model in flight from this process; further calls fail with QueueFull. Default 10,000. */
  readonly maxInFlight?: number
}

export interface ClusterOptions extends CallerOptions {
  /**
   * When the state of a sequence is stored.
   *
   * - `onMove`: when its runner leaves, or hands over the shard. A runner that dies loses the states of its sequences:
   *   their next calls fail with SequenceNotFound.
   * - `eachRequest`: also ahead of each response. A runner that dies loses nothing that was answered.
   *
   * Default `onMove`.
   */
  readonly persist?: "onMove" | "eachRequest"
  /** Calls of one part of the sequences that its owner holds. Default: `entityMailboxCapacity` of the ShardingConfig. */
  readonly mailboxCapacity?: number
}

/** The declarations of models with sequences. */
type DeclaredSequence = Exclude<Declared, undefined> & { readonly sequence: object }

/**
 * Provides the model to this process, from all runners of the cluster, and executes the sequences that this runner owns
 * in the given layer:
 *
 * ```ts
 * const SumsCluster = Cluster.layer(Sums, SumsLive).pipe(Layer.provide([SequenceStore.layerSql(), ClusterLive]))
 * ```
 *
 * Fails with Unsupported for a model whose sequences cannot move, because its state is not in declared tensors.
 * @throws TypeError if a number is out of range
 */
export const layer = <Self, N extends string, I extends Fields, O extends Fields, P extends DeclaredSequence, E, R>(
  model: ModelClass<Self, N, I, O, P>,
  local: Layer.Layer<NoInfer<Self>, E, R>,
  options: ClusterOptions = {},
): Layer.Layer<Self, E | Unsupported, R | Sharding | SequenceStore> => {
  const { definition } = model
  const { persist = "onMove", mailboxCapacity } = options
  const settings = settingsOf(definition, options)
  if (mailboxCapacity !== undefined) requireInteger(definition.name, "mailboxCapacity", mailboxCapacity, 1)
  return Layer.effect(
    model,
    Effect.gen(function* () {
      const store = yield* SequenceStore
      const watch = yield* Watcher
      const context = yield* Layer.build(local).pipe(
        // Watchers see the model of the cluster.
        Effect.provideService(Watcher, (other) => other.description.name === definition.name || watch(other)),
      )
      const owned = Context.get(context, model).model
      const problem = owned.life.sequences?.problem
      if (problem !== undefined) return yield* new Unsupported({ message: problem.message })
      const replies = new ReplyBudget()
      yield* Layer.build(
        SequenceEntity.make(definition.name).toLayer(
          Effect.gen(function* () {
            const { entityId } = yield* Entity.CurrentAddress
            const part = Number(entityId)
            const owner = yield* PartOwner.make({
              model: owned,
              part,
              store,
              persist: persist === "eachRequest",
              replies,
            })
            return {
              Infer: ({ payload }) => owner.infer(payload),
              Stream: ({ payload }) => owner.stream(payload),
            }
          }),
          { concurrency: "unbounded", maxIdleTime: Duration.infinity, mailboxCapacity, disableFatalDefects: true },
        ),
      )
      const routed = yield* RemoteModel.make(definition, yield* ClusterChannel.make(definition.name), settings)
      const { decoupled } = owned.calls
      const running = new RunningModel({
        description: owned.description,
        calls: { ...routed.calls, decoupled, emits: decoupled },
        life: ModelLife.make({
          isReady: owned.life.isReady,
          problem: owned.life.problem,
          probe: owned.life.probe,
          pending: owned.life.pending,
          activity: owned.life.activity,
          unrecoverable: owned.life.unrecoverable,
          instanceGroups: owned.life.instanceGroups,
          drained: Effect.andThen(routed.life.drained, owned.life.drained),
          keep: routed.life.keep,
        }),
      })
      watch(running)
      return inference(definition, running)
    }),
  )
}

/**
 * Provides the model from the runners of the cluster, to a process that executes none of it: a front end or a program
 * that calls. Its sharding may be without a runner (`clientOnly`).
 * @throws TypeError if a number is out of range
 */
export const client = <Self, N extends string, I extends Fields, O extends Fields, P extends DeclaredSequence>(
  model: ModelClass<Self, N, I, O, P>,
  options: CallerOptions = {},
): Layer.Layer<Self, never, Sharding> => {
  const { definition } = model
  const settings = settingsOf(definition, options)
  return Layer.effect(
    model,
    Effect.gen(function* () {
      const channel = yield* ClusterChannel.make(definition.name)
      return inference(definition, yield* RemoteModel.make(definition, channel, settings))
    }),
  )
}

const settingsOf = (
  { name }: Definition<Fields, Fields>,
  { timeout = "2 minutes", maxInFlight = 10_000 }: CallerOptions,
): RemoteModel.RemoteSettings => {
  requireInteger(name, "maxInFlight", maxInFlight, 1)
  const millis = Duration.toMillis(timeout)
  if (!(millis > 0)) throw new TypeError(`Model "${name}": timeout must be positive, but ${String(timeout)} was given.`)
  return { timeout: millis === Infinity ? undefined : millis, version: "", maxInFlight, target: "the cluster" }
}
