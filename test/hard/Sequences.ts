/** Ten thousand live sequences at the same time, over gRPC: each has its own state, and little memory beside it. */
import type { ClientHttp2Session } from "node:http2"
import { fromBinary } from "@bufbuild/protobuf"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Random } from "../conformance/fuzz/Random.ts"
import { type Attack, megabytes, repeated, until } from "./Attack.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

const sequences = 10_000
/** As many in a run of a second. */
const fewSequences = 2000
const connections = 8
const callers = 128

/** Bytes of the state of one sequence, INT32[16]. */
const stateBytes = 64

/** Bytes for an idle sequence, beside its state. */
const maxIdleBytes = 2048

const { output } = GRPCInferenceService.method.modelInfer

/** One sequence, and the sum that the server must have. */
interface Sequence {
  readonly id: bigint
  sum: number
  isLive: boolean
}

/** Sends requests of sequences that no other caller has, one after another. */
class Caller {
  readonly #session: ClientHttp2Session
  readonly #own: ReadonlyArray<Sequence>
  readonly #random: Random
  answers = 0
  cancelled = 0

  constructor(session: ClientHttp2Session, own: ReadonlyArray<Sequence>, random: Random) {
    this.#session = session
    this.#own = own
    this.#random = random
  }

  /** A request of any sequence: mostly the next one, sometimes the last one, or one that is cancelled. */
  async step(): Promise<void> {
    const sequence = this.#own[this.#random.below(this.#own.length)]
    if (sequence === undefined) return
    if (sequence.isLive && this.#random.chance(0.02)) return this.#cancel(sequence)
    await this.send(sequence, { isEnd: this.#random.chance(0.05) })
  }

  async send(sequence: Sequence, { isEnd = false } = {}): Promise<void> {
    const value = this.#random.below(1000)
    const isStart = !sequence.isLive
    const request = GrpcCalls.sequenceRequest(sequence.id, value, { isStart, isEnd })
    const { status, message, body } = await GrpcCalls.call(this.#session, request)
    if (status !== "0") throw new Error(`sequence ${sequence.id} failed with ${status}: ${message}`)
    const [raw] = fromBinary(output, body.subarray(5)).rawOutputContents
    const total = raw === undefined ? undefined : Buffer.from(raw).readInt32LE()
    sequence.sum = (isStart ? 0 : sequence.sum) + value
    sequence.isLive = !isEnd
    if (total !== sequence.sum) throw new Error(`sequence ${sequence.id} has ${total} instead of ${sequence.sum}`)
    this.answers += 1
  }

  /** Brings all own sequences into being, or to their end. */
  async all(live: boolean): Promise<void> {
    for (const sequence of this.#own) if (sequence.isLive !== live) await this.send(sequence, { isEnd: !live })
  }

  /** Nobody knows whether the request was executed, so the sequence begins anew. */
  async #cancel(sequence: Sequence): Promise<void> {
    GrpcCalls.cancelled(this.#session, GrpcCalls.sequenceRequest(sequence.id, 1, { isStart: false, isEnd: false }))
    this.cancelled += 1
    sequence.isLive = false
    await this.send(sequence)
  }
}

const liveSequences = async ({ metrics }: Target): Promise<number> => {
  const text = await (await fetch(`http://localhost:${metrics}/metrics`)).text()
  return Number(/nereid_sequences_live\{[^}]*model="sums"[^}]*\} (\d+)/.exec(text)?.[1])
}

const expectLive = (target: Target, count: number) =>
  until(`${count} live sequences`, async () => (await liveSequences(target)) === count)

export const storm: Attack = {
  name: "10,000 live sequences",
  seconds: 60,
  start: () => Target.serve(),
  run: async (target, { seconds, seed }) => {
    const count = seconds < 2 ? fewSequences : sequences
    const sessions = Array.from({ length: connections }, () => GrpcCalls.open(target.grpc))
    const all = Array.from({ length: count }, (_, index): Sequence => ({
      id: BigInt(index + 1),
      sum: 0,
      isLive: false,
    }))
    const each = Array.from({ length: callers }, (_, index) => {
      const own = all.filter((_, position) => position % callers === index)
      return new Caller(sessions[index % connections] ?? GrpcCalls.open(target.grpc), own, Random.of(seed, index))
    })
    const together = (work: (caller: Caller) => Promise<unknown>) => Promise.all(each.map(work))
    const load = (time: number) => together((caller) => repeated(time, () => caller.step()))

    // Code is compiled, and as many ended sequences are remembered as ever are.
    await together((caller) => caller.all(true))
    await load(Math.min(seconds, 5))
    await together((caller) => caller.all(true))
    await together((caller) => caller.all(false))
    await expectLive(target, 0)
    const empty = await target.collected()

    await together((caller) => caller.all(true))
    await expectLive(target, count)
    const idle = await target.collected()
    const bytes = (idle.heap + idle.buffers - empty.heap - empty.buffers) / count - stateBytes
    if (bytes > maxIdleBytes) throw new Error(`an idle sequence takes ${Math.round(bytes)} bytes beside its state`)

    const startedAt = performance.now()
    const before = each.reduce((sum, { answers }) => sum + answers, 0)
    await load(seconds)
    const rate = (each.reduce((sum, { answers }) => sum + answers, 0) - before) / (performance.now() - startedAt)
    await together((caller) => caller.all(true))
    await expectLive(target, count)
    let after = idle
    await until(`memory back to ${megabytes(idle.heap)} of heap, ${megabytes(idle.resident)} resident`, async () => {
      after = await target.collected()
      return after.heap < idle.heap * 1.1 && after.resident < idle.resident * 1.2
    })

    await together((caller) => caller.all(false))
    await expectLive(target, 0)
    for (const session of sessions) session.destroy()
    const cancelled = each.reduce((sum, caller) => sum + caller.cancelled, 0)
    return [
      `${Math.round(rate * 1000)} requests/s, ${cancelled} cancelled`,
      `an idle sequence takes ${Math.round(bytes)} bytes beside its state`,
      `heap ${megabytes(idle.heap)} before and ${megabytes(after.heap)} after`,
      `resident ${megabytes(idle.resident)} and ${megabytes(after.resident)}`,
    ].join(", ")
  },
}
