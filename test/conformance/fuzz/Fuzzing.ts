/**
 * Sends nearly valid requests over both protocols, many at a time on persistent connections, and compares their results
 * with those of the oracles (HttpOracle.ts, GrpcOracle.ts).
 */
import { GrpcConnection } from "../GrpcConnection.ts"
import { HttpConnection } from "../HttpConnection.ts"
import { parse } from "../JsonText.ts"
import { type Attempt, attempt } from "./Attempt.ts"
import { type AttemptResult, overGrpc, overHttp, overStream } from "./AttemptResult.ts"

/** Ports of one server, and the gRPC port of another one, which serves gRPC through Connect. */
export interface FuzzedPorts {
  readonly http: number
  readonly grpc: number
  readonly metrics: number
  readonly connect: number
}

export interface Selection {
  readonly seed: number
  /** Number of the first request. */
  readonly first: number
  readonly count: number
}

export interface FuzzResult {
  readonly problems: ReadonlyArray<string>
  /** How the server's counters must have counted the requests. */
  readonly counted: { readonly [counted in AttemptResult["counted"]]: number }
}

/** Maximum requests in flight. */
const width = 64

const httpConnections = 4

/** Throws if a connection cannot be opened. */
export const fuzz = async (ports: FuzzedPorts, { seed, first, count }: Selection): Promise<FuzzResult> => {
  const connections = new ConnectionPool(ports)
  const problems: Array<string> = []
  const counted = { success: 0, fail: 0, not: 0 }
  for (let start = first; start < first + count; start += width) {
    const length = Math.min(width, first + count - start)
    const results = await Promise.all(
      Array.from({ length }, async (_, offset) => {
        const index = start + offset
        const one = attempt(seed, index)
        const result = await send(connections, index, one).catch(unanswered)
        counted[result.counted] += 1
        return result.problem === undefined ? [] : `${index}: ${one.description}: ${result.problem}`
      }),
    )
    problems.push(...results.flat())
  }
  await connections.close()
  return { problems, counted }
}

const unanswered = (error: unknown): AttemptResult => ({ problem: String(error), counted: "not" })

const send = async (connections: ConnectionPool, index: number, one: Attempt): Promise<AttemptResult> => {
  const { sent } = one
  if (sent.protocol === "HTTP") return overHttp(one, await (await connections.http(index)).request(sent.request))
  const connection = await connections.grpc(sent.through)
  return (sent.stream ? overStream : overGrpc)(one, await connection.call(sent.call))
}

/** Connections that are opened again after a request has closed them. */
class ConnectionPool {
  readonly #ports: FuzzedPorts
  readonly #http = new Map<number, Promise<HttpConnection>>()
  readonly #grpc = new Map<number, Promise<GrpcConnection>>()

  constructor(ports: FuzzedPorts) {
    this.#ports = ports
  }

  http(index: number): Promise<HttpConnection> {
    return opened(this.#http, index % httpConnections, () => HttpConnection.open(this.#ports.http))
  }

  grpc(through: "normal" | "connect"): Promise<GrpcConnection> {
    const port = through === "normal" ? this.#ports.grpc : this.#ports.connect
    return opened(this.#grpc, port, () => GrpcConnection.open(port))
  }

  async close(): Promise<void> {
    for (const connection of await Promise.all([...this.#http.values(), ...this.#grpc.values()])) connection.close()
  }
}

/** The open connection of a key; opens a new one if there is none. */
const opened = async <C extends { readonly isOpen: boolean }>(
  connections: Map<number, Promise<C>>,
  key: number,
  open: () => Promise<C>,
): Promise<C> => {
  const known = connections.get(key)
  if (known !== undefined && (await known).isOpen) return known
  // Another request may have opened one meanwhile.
  if (connections.get(key) === known) connections.set(key, open())
  return opened(connections, key, open)
}

/** The counters of all models together, and the requests that are still pending. */
export const totals = async (ports: FuzzedPorts) => {
  const connection = await HttpConnection.open(ports.http)
  const { body } = await connection.request({ path: "/v2/models/stats" })
  connection.close()
  let [success, fail] = [0, 0]
  const add = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return
    for (const [key, member] of Object.entries(value)) {
      if (key === "inference_stats") {
        success += countOf(member, "success")
        fail += countOf(member, "fail")
      } else add(member)
    }
  }
  add(parse(body.toString()))
  const metrics = await HttpConnection.open(ports.metrics)
  const text = (await metrics.request({ path: "/metrics" })).body.toString()
  metrics.close()
  const waiting = [...text.matchAll(/^nv_inference_pending_request_count\{.*\} ([0-9]+)$/gm)]
  return { success, fail, waiting: waiting.map(([, pending]) => Number(pending)).reduce((a, b) => a + b, 0) }
}

const countOf = (statistics: unknown, name: string): number => {
  const pattern = new RegExp(`"${name}":\\{"count":\\{"number":"([0-9]+)"`)
  return Number(pattern.exec(JSON.stringify(statistics))?.[1])
}
