/** One sequence from its first request to its end, as data of LiveSequences.ts. */
import type { Expiry } from "../scheduler/Expiries.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import type { SequenceId, SequenceState } from "../request/SequencePosition.ts"
import type { FinalEnd } from "./EndedSequences.ts"
import type { IdleMember } from "./IdleHeap.ts"
import type { Lane, LaneMember } from "./Lane.ts"
import type { Links } from "./RunList.ts"
import type { SequenceMemory } from "./SequenceMemory.ts"

/** Keeps a sequence from further executions, for an export. */
export interface Hold {
  /** The running request of the sequence has ended, or the sequence is over. */
  readonly quiet: () => void
}

export class SequenceRun implements LaneMember, IdleMember {
  readonly id: SequenceId
  /** When its first request was submitted, in the scheduler's nanoseconds. */
  readonly startedAt: number
  /** State since the last START. */
  memory: SequenceMemory
  readonly waiting: Array<QueuedRequest> = []
  issued: QueuedRequest | undefined = undefined
  /** States of earlier STARTs, until the request of the next START is executed. */
  readonly #superseded: Array<SequenceMemory> = []
  /** Whether its first request has come. */
  isStarted = false
  lane: Lane | undefined = undefined
  slot = -1
  /** Its place among the idle sequences, or in the backlog. */
  readonly links: Links<SequenceRun> = { list: undefined, previous: undefined, next: undefined }
  /** Its own limit in nanoseconds, infinite for none; undefined for that of the model. */
  maxIdle: number | undefined = undefined
  /** While it is idle: when it expires, in the scheduler's nanoseconds. */
  expiresAt = Infinity
  /** Its place among the idle sequences with their own limits. */
  place = -1
  /** Set while it is being exported. */
  held: Hold | undefined = undefined
  /** Set once no further request can join it. */
  end: FinalEnd | undefined = undefined
  /** While it waits for a slot: when its earliest request times out, in the scheduler's nanoseconds. */
  deadline: Expiry<SequenceRun> | undefined = undefined

  constructor(id: SequenceId, startedAt: number, memory: SequenceMemory) {
    this.id = id
    this.startedAt = startedAt
    this.memory = memory
  }

  get isHeld(): boolean {
    return this.held !== undefined
  }

  /** The state begins anew with the next request. */
  restart(memory: SequenceMemory): void {
    this.#superseded.push(this.memory)
    this.memory = memory
  }

  /** Ends the states that came before this one. */
  endBefore(state: SequenceState): void {
    while (this.#superseded.length > 0 && this.#superseded[0] !== state) this.#superseded.shift()?.end("replaced")
  }

  /** Ends all its states. */
  endState(): void {
    this.endBefore(this.memory)
    this.memory.end(this.end ?? "ended")
  }
}
