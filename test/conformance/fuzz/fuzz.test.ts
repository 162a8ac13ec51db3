/**
 * Fuzzing by mutation: requests that are nearly right, over both protocols, many at a time on kept connections. Each gets
 * what it deserves by an oracle of its own (HttpOracle.ts, GrpcOracle.ts): its outputs, or an error that is one of the
 * protocol's. Afterwards the server is as healthy as before, its queues are empty, and its counters have counted all.
 *
 * NEREID_FUZZ_SEED and NEREID_FUZZ_COUNT choose which and how many; NEREID_FUZZ_FIRST is the number of the first.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { GrpcCode, table, tagHeader } from "@nereid/core/Errors"
import { grpcOutputs, httpOutputs } from "../Answer.ts"
import { Connections } from "../Connections.ts"
import { bytesOf } from "../Elements.ts"
import type { GrpcAnswer, GrpcConnection } from "../GrpcConnection.ts"
import { type HttpAnswer, HttpConnection } from "../HttpConnection.ts"
import type { Tensor } from "../InferRequest.ts"
import { parse } from "../JsonText.ts"
import { type Attempt, attempt } from "./Attempt.ts"
import { anyBytes } from "./Verdict.ts"

const number = (name: string, otherwise: number): number => {
  const text = process.env[name]
  if (text === undefined) return otherwise
  if (!/^[0-9]+$/.test(text)) throw new TypeError(`${name} must be a number, got: ${text}`)
  return Number(text)
}

const seed = number("NEREID_FUZZ_SEED", 1)
const first = number("NEREID_FUZZ_FIRST", 0)
const count = number("NEREID_FUZZ_COUNT", 10_000)

/** Requests that are under way at one time. */
const width = 64

/** How an attempt ended, as far as the server's counters must know of it. */
interface Ended {
  readonly problem: string | undefined
  /** Counted by a model: a request that it answered, or that was refused in its name. */
  readonly counted: "success" | "fail" | "not"
}

const judge = (
  one: Attempt,
  status: { readonly ok: boolean; readonly refusal: string },
  read: () => ReadonlyArray<Tensor>,
): Ended => {
  const { outputs, breaks } = one
  if (breaks && outputs !== undefined) return { problem: "the oracle takes what cannot be valid", counted: "not" }
  if (!status.ok) {
    const problem = outputs === undefined ? undefined : `refused what is valid: ${status.refusal}`
    return { problem, counted: counted(status.refusal) }
  }
  if (outputs === undefined)
    return { problem: `answered what is not valid: ${read().map(printed).join()}`, counted: "success" }
  const [actual, expected] = [read(), outputs]
  const same =
    actual.length === expected.length &&
    expected.every((output, index) => {
      const other = actual[index]
      if (other === undefined) return false
      return (
        printed(output.bytes === anyBytes ? { ...other, ...output, bytes: bytesOf(other) } : output) === printed(other)
      )
    })
  const problem = same
    ? undefined
    : `answered ${actual.map(printed).join("; ")}, expected ${expected.map(printed).join("; ")}`
  return { problem, counted: "success" }
}

/** Errors in a request's name are a model's; those of how an answer is written come after its success. */
const counted = (refusal: string): Ended["counted"] => {
  if (/^(sending (FP|BF)16 data|class result|classification output|element [0-9]+ of output)/.test(refusal))
    return "success"
  return refusal.startsWith("[request id: ") && !/\] (Raw request|The shape of the raw|For BYTE datatype)/.test(refusal)
    ? "fail"
    : "not"
}

/** A tensor in one line, all NaN alike. */
const printed = (of: Tensor): string => {
  const bytes = Buffer.from(bytesOf(of))
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (of.datatype === "FP32") {
    for (let at = 0; at < bytes.length; at += 4)
      if (Number.isNaN(view.getFloat32(at, true))) view.setFloat32(at, Number.NaN, true)
  }
  if (of.datatype === "FP64") {
    for (let at = 0; at < bytes.length; at += 8)
      if (Number.isNaN(view.getFloat64(at, true))) view.setFloat64(at, Number.NaN, true)
  }
  return `${of.name} ${of.datatype}[${of.shape}] ${bytes.toString("hex")}`
}

const statuses: ReadonlySet<number> = new Set(Object.values(table).map(({ http }) => http))

const httpEnded = (one: Attempt, answer: HttpAnswer): Ended => {
  const { status, headers, body } = answer
  if (status === 200) return judge(one, { ok: true, refusal: "" }, () => httpOutputs(answer).outputs)
  const text = body.toString()
  const error: unknown = JSON.parse(text)
  const refusal = typeof error === "object" && error !== null && "error" in error ? String(error.error) : ""
  const problem = (what: string): Ended => ({ problem: `${what}: ${status} ${text.slice(0, 300)}`, counted: "not" })
  if (!statuses.has(status)) return problem("a status that is none of the protocol's")
  if (refusal === "" || headers.get("content-type") !== "application/json") return problem("no error as JSON")
  if (status === 500 && headers.get(tagHeader) !== "MalformedRequest") return problem("a failure of the server")
  return judge(one, { ok: false, refusal }, () => [])
}

const codes: ReadonlySet<number> = new Set(Object.values(table).map(({ grpc }) => grpc))

const grpcEnded = (one: Attempt, answer: GrpcAnswer): Ended => {
  const { httpStatus, code, message } = answer
  if (code === 0) return judge(one, { ok: true, refusal: "" }, () => grpcOutputs(answer).outputs)
  const problem = (what: string): Ended => ({ problem: `${what}: ${code} ${message.slice(0, 300)}`, counted: "not" })
  if (httpStatus !== 200 || code === undefined || !codes.has(code) || message === "")
    return problem("no status of gRPC")
  // Connect's own word for bytes that are no message.
  if (code === GrpcCode.INTERNAL && !/^(parse binary|protocol error)/.test(message))
    return problem("a failure of the server")
  return judge(one, { ok: false, refusal: message }, () => [])
}

const run = async (pool: Pool, index: number): Promise<Ended> => {
  const one = attempt(seed, index)
  const failed = (error: unknown): Ended => ({ problem: String(error), counted: "not" })
  const { sent } = one
  const ended =
    sent.protocol === "HTTP"
      ? await (
          await pool.http(index)
        )
          .request(sent.request)
          .then((answer) => httpEnded(one, answer))
          .catch(failed)
      : await (
          await pool.grpc(sent.through)
        )
          .call(sent.call)
          .then((answer) => grpcEnded(one, answer))
          .catch(failed)
  if (ended.problem === undefined) return ended
  return { ...ended, problem: `${index}: ${one.what}: ${ended.problem}` }
}

interface Pool {
  readonly http: (index: number) => Promise<HttpConnection>
  readonly grpc: (through: "normal" | "connect") => Promise<GrpcConnection>
}

/** What all models together have counted, and that none of them has anything left to do. */
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
              const again = HttpConnection.open(connections.servers.normal.http)
              opened[at] = again
              return again
            },
            grpc: connections.grpc,
          }
          const before = await totals(connections)
          const all: Array<Ended> = []
          for (let start = first; start < first + count; start += width) {
            const length = Math.min(width, first + count - start)
            all.push(...(await Promise.all(Array.from({ length }, (_, offset) => run(pool, start + offset)))))
          }
          const after = await totals(connections)
          for (const connection of await Promise.all(opened)) connection.close()
          return { all, before, after }
        })
        const problems = ended.all.flatMap(({ problem }) => problem ?? [])
        const again = `NEREID_FUZZ_SEED=${seed} NEREID_FUZZ_FIRST=<number> NEREID_FUZZ_COUNT=1`
        assert.deepStrictEqual(problems.slice(0, 10), [], `${problems.length} problems; one alone: ${again}`)
        const told = (counted: Ended["counted"]) => ended.all.filter((one) => one.counted === counted).length
        const { before, after } = ended
        assert.deepStrictEqual(
          { success: after.success - before.success, fail: after.fail - before.fail, waiting: after.waiting },
          { success: told("success"), fail: told("fail"), waiting: 0 },
        )
        // Neither all right nor all wrong, or it would prove little.
        if (count >= 1000) assert.isAbove(Math.min(told("success"), told("fail"), told("not")), count / 20)
      }),
    180_000,
  )
})
