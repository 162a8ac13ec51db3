/**
 * Fuzzing by mutation: nearly valid requests over both protocols, many at a time on persistent connections. An
 * independent oracle for each (HttpOracle.ts, GrpcOracle.ts) determines whether it must receive its outputs or an error
 * of the protocol. Afterwards the server must be healthy, its queues empty, and its counters complete.
 *
 * NEREID_FUZZ_SEED and NEREID_FUZZ_COUNT select the requests; NEREID_FUZZ_FIRST is the number of the first.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "../Connections.ts"
import type { GrpcConnection } from "../GrpcConnection.ts"
import { HttpConnection } from "../HttpConnection.ts"
import { parse } from "../JsonText.ts"
import { type Attempt, attempt } from "./Attempt.ts"
import { type AttemptResult, overGrpc, overHttp, overStream } from "./AttemptResult.ts"
import { count, first, seed } from "./settings.ts"

/** Requests that are under way at one time. */
const width = 64

const run = async (pool: Pool, index: number): Promise<AttemptResult> => {
  const one = attempt(seed, index)
  const ended = await send(pool, index, one).catch((error: unknown): AttemptResult => ({
    problem: String(error),
    counted: "not",
  }))
  return ended.problem === undefined ? ended : { ...ended, problem: `${index}: ${one.description}: ${ended.problem}` }
}

const send = async (pool: Pool, index: number, one: Attempt): Promise<AttemptResult> => {
  const { sent } = one
  if (sent.protocol === "HTTP") return overHttp(one, await (await pool.http(index)).request(sent.request))
  const connection = await pool.grpc(sent.through)
  return (sent.stream ? overStream : overGrpc)(one, await connection.call(sent.call))
}

interface Pool {
  readonly http: (index: number) => Promise<HttpConnection>
  readonly grpc: (through: "normal" | "connect") => Promise<GrpcConnection>
}

/** The sum of all models' counters. Asserts that no model has pending requests. */
const totals = async (connections: Connections["Service"]) => {
  const connection = await connections.http("normal")
  const { body } = await connection.request({ path: "/v2/models/stats" })
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
  const metrics = await HttpConnection.open(connections.servers.normal.metrics)
  const text = (await metrics.request({ path: "/metrics" })).body.toString()
  metrics.close()
  const waiting = [...text.matchAll(/^nv_inference_pending_request_count\{.*\} ([0-9]+)$/gm)]
  return { success, fail, waiting: waiting.map(([, pending]) => Number(pending)).reduce((a, b) => a + b, 0) }
}

const countOf = (statistics: unknown, name: string): number => {
  const pattern = new RegExp(`"${name}":\\{"count":\\{"number":"([0-9]+)"`)
  return Number(pattern.exec(JSON.stringify(statistics))?.[1])
}

layer(Connections.layer, { excludeTestServices: true })("fuzzing", (it) => {
  it.effect(
    `${count} requests that are nearly right, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const connections = yield* Connections
        const ended = yield* Effect.promise(async () => {
          const opened = Array.from({ length: 4 }, () => HttpConnection.open(connections.servers.normal.http))
          const pool: Pool = {
            http: async (index) => {
              const at = index % opened.length
              const known = await opened[at]
              if (known?.isOpen === true) return known
              const reopened = HttpConnection.open(connections.servers.normal.http)
              opened[at] = reopened
              return reopened
            },
            grpc: connections.grpc,
          }
          const before = await totals(connections)
          const all: Array<AttemptResult> = []
          for (let start = first; start < first + count; start += width) {
            const length = Math.min(width, first + count - start)
            all.push(...(await Promise.all(Array.from({ length }, (_, offset) => run(pool, start + offset)))))
          }
          const after = await totals(connections)
          for (const connection of await Promise.all(opened)) connection.close()
          return { all, before, after }
        })
        const problems = ended.all.flatMap(({ problem }) => problem ?? [])
        const rerun = `NEREID_FUZZ_SEED=${seed} NEREID_FUZZ_FIRST=<number> NEREID_FUZZ_COUNT=1`
        assert.deepStrictEqual(problems.slice(0, 10), [], `${problems.length} problems; one alone: ${rerun}`)
        const countedAs = (counted: AttemptResult["counted"]) =>
          ended.all.filter((one) => one.counted === counted).length
        const { before, after } = ended
        assert.deepStrictEqual(
          { success: after.success - before.success, fail: after.fail - before.fail, waiting: after.waiting },
          { success: countedAs("success"), fail: countedAs("fail"), waiting: 0 },
        )
        // Neither all right nor all wrong, or it would prove little.
        if (count >= 1000)
          assert.isAbove(Math.min(countedAs("success"), countedAs("fail"), countedAs("not")), count / 20)
      }),
    180_000,
  )
})
