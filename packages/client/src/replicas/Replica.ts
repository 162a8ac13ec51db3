/** State of one replica: its channel, its calls, how fast it is and whether it receives calls. */
import type { ServerChannel } from "../channel/Channel.ts"
import type { Ejection } from "./Ejection.ts"
import { Latency } from "./Latency.ts"

export class Replica {
  /** Host and port, or the address behind a name. */
  readonly address: string
  readonly channel: ServerChannel
  readonly ejection: Ejection
  readonly latency = new Latency()
  /** Attempts that have not ended. */
  outstanding = 0
  /** Sequences whose requests it receives. */
  sequences = 0
  /** Whether the health check has succeeded, or there is none. */
  isHealthy = true
  /** Whether it is no longer listed: only its sequences and attempts under way go on. */
  isRemoved = false
  /** The server asked for a pause until then. */
  pausedUntil = 0
  /** Called when a health check takes it out. */
  readonly onUnhealthy = new Set<() => void>()

  constructor(address: string, channel: ServerChannel, ejection: Ejection) {
    this.address = address
    this.channel = channel
    this.ejection = ejection
  }

  /** Share of its calls that it receives, from 0 to 1. */
  share(now: number): number {
    return this.isHealthy && now >= this.pausedUntil ? this.ejection.share(now) : 0
  }

  /** Whether nothing needs its connections any more. */
  get isUnused(): boolean {
    return this.isRemoved && this.outstanding === 0 && this.sequences === 0
  }
}
