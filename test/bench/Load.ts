/**
 * A closed loop: so many requests are always under way, and each reply sends the next. It counts and times the replies;
 * how a request travels is the business of GrpcLoad.ts and HttpLoad.ts. Not an open loop: it shows what a server can do,
 * not what callers wait who do not wait for one another.
 */
import { createHistogram } from "node:perf_hooks"

/** A connection on which requests, all the same, are sent and their replies checked. */
export interface Connection {
  readonly send: () => void
  /** Ended by the server: nothing can be sent any more. */
  readonly isLost: () => boolean
  readonly close: () => void
}

/** Called once per request that was sent, with what was wrong with the reply, if anything. */
export type OnReply = (milliseconds: number, problem: string | undefined) => void

export interface Target {
  readonly connect: (onReply: OnReply) => Promise<Connection>
  /** How many connections share so many requests. */
  readonly connections: (concurrency: number) => number
}

export interface Measured {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly errors: ReadonlyArray<string>
}

/** Milliseconds that the last replies may take. */
const patience = 5_000

export const run = async (target: Target, concurrency: number, seconds: number): Promise<Measured> => {
  const latencies = createHistogram()
  const errors: Array<string> = []
  const { promise: answered, resolve: allAnswered } = Promise.withResolvers<void>()
  let requests = 0
  let outstanding = concurrency
  let deadline = Infinity

  const open = async (): Promise<Connection> => {
    const connection = await target.connect((milliseconds, problem) => {
      const inTime = performance.now() < deadline
      if (problem !== undefined) errors.push(problem)
      else if (inTime) {
        requests += 1
        latencies.record(Math.max(1, Math.round(milliseconds * 1e6)))
      }
      if (inTime && !connection.isLost()) connection.send()
      else if (--outstanding === 0) allAnswered()
    })
    return connection
  }
  const connections = await Promise.all(Array.from({ length: target.connections(concurrency) }, open))

  const started = performance.now()
  deadline = started + seconds * 1000
  for (let index = 0; index < concurrency; index++) connections[index % connections.length]?.send()
  const timer = setTimeout(allAnswered, seconds * 1000 + patience)
  await answered
  clearTimeout(timer)
  for (let index = 0; index < outstanding; index++) errors.push(`no reply within ${patience} ms`)
  for (const connection of connections) connection.close()
  return {
    requests,
    // Where every connection was lost, it ended early.
    perSecond: (requests / (Math.min(performance.now(), deadline) - started)) * 1000,
    p50: latencies.percentile(50) / 1e6,
    p99: latencies.percentile(99) / 1e6,
    errors,
  }
}
