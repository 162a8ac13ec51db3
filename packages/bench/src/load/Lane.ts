/**
 * Slot for a connection, which is replaced when it ends. Requests that the server had not begun are sent again on the
 * next connection, and their latency continues to count.
 */
import * as Address from "../target/Address.ts"
import type { CallDeadline, Connection, Overload, Target } from "../target/Load.ts"

/** Callback of a load for each reply. The next request may use `lane`. */
export type OnReply = (lane: Lane, startedAt: number, problem: string | undefined, overload?: Overload) => void

/** Milliseconds before a retry, if the connection never received a reply or could not be opened. */
const pause = 100

/** One slot for a connection. `send` queues a request until the connection is open. */
export class Lane {
  readonly #target: Target
  #connection: Connection | undefined
  /** Requests that wait for a connection. */
  #waiting: Array<{ readonly startedAt: number; readonly deadline: CallDeadline | undefined }> = []
  #opening: Promise<void> | undefined
  /** Whether the previous connection received any reply. */
  #hasReplied = true
  #closed = false
  #opened = 0
  /** Callback for replies, set by the load. */
  onReply: OnReply = () => {}

  /** Makes a lane. Its connection is opened by `open` or by the first request. */
  constructor(target: Target) {
    this.#target = target
  }

  /** @throws Error if no connection can be opened */
  async open(): Promise<void> {
    await this.#connect()
  }

  /** Number of connections opened after the first. */
  get reconnections(): number {
    return Math.max(0, this.#opened - 1)
  }

  send(startedAt: number, deadline?: CallDeadline): void {
    if (this.#connection?.accepts === true) return this.#connection.send(startedAt, deadline)
    const waiting = { startedAt, deadline }
    this.#waiting.push(waiting)
    if (deadline !== undefined) {
      deadline.cancel = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
      }
    }
    this.#reopen()
  }

  /** Closes the connection and drops all requests in flight. */
  abandon(): void {
    this.#waiting = []
    this.#connection?.close()
    this.#connection = undefined
  }

  close(): void {
    this.#closed = true
    this.abandon()
  }

  async #connect(): Promise<void> {
    this.#connection = await this.#target.connect({
      onReply: (startedAt, problem, overload) => {
        if (problem === undefined) this.#hasReplied = true
        this.onReply(this, startedAt, problem, overload)
      },
      onUnseen: (startedAt, deadline) => this.send(startedAt, deadline),
    })
    this.#opened += 1
    if (this.#closed) this.#connection.close()
  }

  #reopen(): void {
    if (this.#opening !== undefined || this.#closed) return
    const wait = this.#hasReplied ? 0 : pause
    this.#hasReplied = false
    this.#opening = this.#replace(wait)
  }

  async #replace(wait: number): Promise<void> {
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    let problem: string | undefined
    try {
      if (!this.#closed) await this.#connect()
    } catch (error) {
      problem = Address.reason(error)
    }
    this.#opening = undefined
    for (const { startedAt, deadline } of this.#waiting.splice(0)) {
      if (problem === undefined) this.send(startedAt, deadline)
      else this.onReply(this, startedAt, problem)
    }
  }
}

/** Opens `count` lanes concurrently. @throws Error if a connection cannot be opened */
export const openAll = async (target: Target, count: number): Promise<ReadonlyArray<Lane>> => {
  const lanes = Array.from({ length: count }, () => new Lane(target))
  try {
    await Promise.all(lanes.map((lane) => lane.open()))
  } catch (error) {
    for (const lane of lanes) lane.close()
    throw error
  }
  return lanes
}
