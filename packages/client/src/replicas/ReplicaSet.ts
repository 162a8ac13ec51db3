/**
 * The replicas of a client: follows their list, picks one for each attempt, and closes those that have left once their
 * attempts and sequences are over.
 */
import { constVoid } from "effect/Function"
import type { Cancel } from "@nereid/core/internal/request/Request"
import type { ServerChannel } from "../channel/Channel.ts"
import type { AttemptMetrics } from "./AttemptMetrics.ts"
import { Ejection, type ReplicaFailure } from "./Ejection.ts"
import * as HealthCheck from "./HealthCheck.ts"
import { Picker } from "./Picker.ts"
import { Replica } from "./Replica.ts"
import type { ReplicaSettings } from "./ReplicaSettings.ts"
import type { Timers } from "./Timers.ts"

/** A replica that the client should have. */
export interface ReplicaTarget {
  readonly address: string
  readonly open: () => ServerChannel
}

interface ReplicaSetOptions {
  readonly settings: Pick<ReplicaSettings, "ejection" | "health" | "panicThreshold">
  readonly timers: Timers
  readonly metrics: AttemptMetrics
  /** Called when a replica cannot be reached: its address may be out of date. */
  readonly onUnreachable: () => void
}

export class ReplicaSet {
  readonly #options: ReplicaSetOptions
  readonly #picker: Picker
  #replicas: ReadonlyArray<Replica> = []
  /** Removed replicas that still have attempts or sequences. */
  readonly #draining = new Set<Replica>()
  readonly #checks = new Map<Replica, Cancel>()
  readonly #closing = new Set<Promise<void>>()

  constructor(options: ReplicaSetOptions) {
    this.#options = options
    this.#picker = new Picker(options.settings.panicThreshold, options.timers.random)
  }

  get replicas(): ReadonlyArray<Replica> {
    return this.#replicas
  }

  get isEmpty(): boolean {
    return this.#replicas.length === 0
  }

  /** Follows a new list. Replicas that stay keep their connections and what is known of them. */
  update(targets: ReadonlyArray<ReplicaTarget>): void {
    const current = new Map(this.#replicas.map((replica) => [replica.address, replica]))
    const leaving = new Set(this.#replicas)
    this.#replicas = targets.map(({ address, open }) => {
      const known = current.get(address) ?? this.#returning(address)
      if (known !== undefined) leaving.delete(known)
      return known ?? this.#add(address, open())
    })
    for (const replica of leaving) {
      replica.isRemoved = true
      this.#draining.add(replica)
      this.closeIfUnused(replica)
    }
    this.#options.metrics.listed(this.#replicas.length)
  }

  /** Picks the replica of an attempt; undefined only while there are none. */
  pick(tried: ReadonlyArray<Replica>): Replica | undefined {
    return this.#picker.pick(this.#replicas, tried, this.#options.timers.now())
  }

  /** Picks one that has not been tried and may receive calls. */
  untried(tried: ReadonlyArray<Replica>): Replica | undefined {
    return this.#picker.untried(this.#replicas, tried, this.#options.timers.now())
  }

  failed(replica: Replica, failure: ReplicaFailure): void {
    if (replica.ejection.failed(failure, this.#options.timers.now())) this.#options.metrics.ejected(replica)
    if (failure === "unreachable") this.#options.onUnreachable()
  }

  closeIfUnused(replica: Replica): void {
    if (!replica.isUnused) return
    this.#draining.delete(replica)
    this.#close(replica)
  }

  /** Closes the connections, also under running attempts. */
  close(): Promise<void> {
    for (const replica of [...this.#replicas, ...this.#draining]) this.#close(replica)
    this.#replicas = []
    this.#draining.clear()
    return Promise.all(this.#closing).then(constVoid)
  }

  /** A replica that is listed again before its last attempt has ended. */
  #returning(address: string): Replica | undefined {
    for (const replica of this.#draining) {
      if (replica.address !== address) continue
      this.#draining.delete(replica)
      replica.isRemoved = false
      return replica
    }
    return undefined
  }

  #add(address: string, channel: ServerChannel): Replica {
    const { settings, timers, metrics } = this.#options
    const replica = new Replica(address, channel, new Ejection(settings.ejection, timers.random))
    if (settings.health !== undefined) {
      const onChange = (isHealthy: boolean) => {
        replica.isHealthy = isHealthy
        if (isHealthy) return replica.ejection.returns(timers.now())
        metrics.ejected(replica)
        for (const react of replica.onUnhealthy) react()
      }
      this.#checks.set(replica, HealthCheck.watch(channel, settings.health, timers, onChange))
    }
    return replica
  }

  #close(replica: Replica): void {
    this.#checks.get(replica)?.()
    this.#checks.delete(replica)
    const closing = replica.channel.close().finally(() => this.#closing.delete(closing))
    this.#closing.add(closing)
  }
}
