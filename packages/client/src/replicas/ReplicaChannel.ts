/**
 * Channel to several replicas of a server, each with a channel of its own.
 *
 *   Resolver ──addresses──► ReplicaSet ──Picker──► Replica ──► its channel
 *                               ▲                    ▲  Latency, Ejection, HealthCheck
 *   infer, stream ──► ReplicatedCall: attempts ──────┘
 *                        RetryRule, RetryBudget, Hedging, SequenceAffinity
 */
import { type Context, Effect } from "effect"
import { Unavailable } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import type { WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Channel, ChannelStream, ServerChannel } from "../channel/Channel.ts"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import type { AttemptMetrics } from "./AttemptMetrics.ts"
import * as AttemptSpan from "./AttemptSpan.ts"
import { Hedging } from "./Hedging.ts"
import { ReplicaSet } from "./ReplicaSet.ts"
import type { ReplicaSettings } from "./ReplicaSettings.ts"
import { type CallContext, type CallRequest, ReplicatedCall } from "./ReplicatedCall.ts"
import { type Lookup, Resolver } from "./Resolver.ts"
import { RetryBudget } from "./RetryBudget.ts"
import { SequenceAffinity } from "./SequenceAffinity.ts"
import * as Timers from "./Timers.ts"

export interface ReplicaChannelOptions {
  readonly metrics: AttemptMetrics
  /** Options of each connection. The endpoint is that of the first replica, or the name. */
  readonly connection: ClientSettings
  readonly settings: ReplicaSettings
  /** Opens the channel of one replica. */
  readonly open: (settings: ClientSettings) => ServerChannel
  /** Looks up names; undefined where that is impossible. */
  readonly lookup?: Lookup
  /** Default: the clock of the system. */
  readonly timers?: Timers.Timers
}

export const make = (options: ReplicaChannelOptions): Effect.Effect<Channel> =>
  Effect.map(Effect.context<never>(), (context) => {
    const replicas = new Replicas(options, context)
    return {
      infer: (wire, timeoutMs, reply) =>
        replicas.submit<WireResponse>({
          wire,
          timeoutMs,
          mayHedge: true,
          send: (channel, attempt, remaining, end) => channel.infer(attempt, remaining, end),
          reply,
        }),
      stream: (wire, timeoutMs, receiver, model) => {
        let current: ChannelStream | undefined
        let isPaused = false
        const cancel = replicas.submit<void>({
          wire,
          timeoutMs,
          mayHedge: false,
          send: (channel, attempt, remaining, end, commit) => {
            const response = (received: WireResponse) => {
              commit()
              receiver.response(received)
            }
            const stream = channel.stream(attempt, remaining, { response, end }, model)
            if (isPaused) stream.flow(true)
            current = stream
            return stream.cancel
          },
          reply: (outcome) => receiver.end(outcome),
        })
        return {
          cancel,
          flow: (paused) => {
            isPaused = paused
            current?.flow(paused)
          },
        }
      },
      close: () => replicas.close(),
    }
  })

/** A call that waits for the first addresses. */
interface WaitingCall {
  readonly start: () => void
  readonly fail: (error: Unavailable) => void
}

class Replicas {
  readonly #context: CallContext
  readonly #resolver: Resolver | undefined
  readonly #waiting = new Set<WaitingCall>()

  constructor(options: ReplicaChannelOptions, context: Context.Context<never>) {
    const { metrics, settings, timers = Timers.system } = options
    const onUnreachable = () => this.#resolver?.hurry()
    const replicas = new ReplicaSet({ settings, timers, metrics, onUnreachable })
    this.#context = {
      settings,
      replicas,
      affinity: new SequenceAffinity((replica) => replicas.closeIfUnused(replica)),
      budget: new RetryBudget(settings.retryBudget),
      hedging: settings.hedge && new Hedging(settings.hedge),
      timers,
      metrics,
      beginSpan: AttemptSpan.beginner(context),
    }
    this.#resolver = this.#start(options, timers)
  }

  /** Begins a call, at once or when there is a replica. */
  submit<A>(request: CallRequest<A>): Cancel {
    const { replicas } = this.#context
    const call = new ReplicatedCall(this.#context, request)
    if (!replicas.isEmpty) {
      call.start()
      return () => call.cancel()
    }
    const waiting = { start: () => call.start(), fail: (error: Unavailable) => call.fail(error) }
    this.#waiting.add(waiting)
    this.#resolver?.hurry()
    return () => {
      this.#waiting.delete(waiting)
      call.cancel()
    }
  }

  async close(): Promise<void> {
    this.#resolver?.close()
    await this.#context.replicas.close()
  }

  #start(
    { connection, settings, open, lookup = unsupported }: ReplicaChannelOptions,
    timers: Timers.Timers,
  ): Resolver | undefined {
    const { replicas } = this.#context
    const { targets } = settings
    if (targets._tag === "List") {
      replicas.update(
        targets.servers.map((endpoint) => ({
          address: ServerUrl.address(endpoint),
          open: () => open({ ...connection, endpoint }),
        })),
      )
      return undefined
    }
    const { server, interval } = targets
    const { host, port } = server
    const resolver = new Resolver({
      host,
      lookup,
      interval,
      timeout: connection.connectTimeout,
      timers,
      onAddresses: (ips) => {
        replicas.update(
          ips.map((ip) => ({
            address: ServerUrl.address({ host: ip, port }),
            open: () => open({ ...connection, endpoint: server, ip }),
          })),
        )
        for (const call of this.#taken()) call.start()
      },
      onFailure: (reason) => {
        const error = new Unavailable({ message: `cannot look up ${host}: ${reason}` })
        for (const call of this.#taken()) call.fail(error)
      },
    })
    return resolver
  }

  #taken(): ReadonlyArray<WaitingCall> {
    const calls = [...this.#waiting]
    this.#waiting.clear()
    return calls
  }
}

const unsupported: Lookup = () => Promise.reject(new Error("names cannot be looked up here"))
