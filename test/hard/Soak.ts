/** Load of every kind for a long time, after which the server must be as small as before. */
import { type Attack, megabytes, repeated, sleep, until } from "./Attack.ts"
import { beside, http, zeros } from "./Callers.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import { Target } from "./Target.ts"

/** Answers, refusals, cancelled calls, new connections and large responses, beside the callers. */
const round = async (target: Target): Promise<void> => {
  const session = GrpcCalls.open(target.grpc)
  for (let call = 0; call < 20; call++) GrpcCalls.cancelled(session, GrpcCalls.request(100))
  const { status } = await GrpcCalls.call(session, GrpcCalls.slowRequest(5000), "5m")
  if (status !== "4") throw new Error(`a call past its deadline ended with ${status}`)
  session.destroy()
  const large = await http(target.http, "models/zeros/infer", zeros(2 ** 20))
  if (large.status !== 200) throw new Error(`a large request was answered with ${large.status}`)
  const wrong = await Promise.all([
    http(target.http, "models/zeros/infer", '{"inputs":[{'),
    http(target.http, "models/none/infer", zeros(1)),
    http(target.http, "models/zeros/infer", '{"inputs":[]}'),
  ])
  for (const { status, text } of wrong) {
    if (status === 200 || !text.startsWith('{"error":"')) throw new Error(`a wrong request got ${status}: ${text}`)
  }
  const stats = await fetch(`http://localhost:${target.metrics}/metrics`)
  await stats.text()
}

const load = (target: Target, seconds: number) => beside(target, () => repeated(seconds, () => round(target)))

export const soak: Attack = {
  name: "soak: load of every kind",
  seconds: 3600,
  start: () => Target.serve(),
  run: async (target, { seconds }) => {
    // Caches fill, and V8 optimizes, in the first part of the load.
    await load(target, Math.min(seconds, 60))
    const before = await target.collected()
    const answers = await load(target, seconds)
    let after = before
    await until(
      `memory back to ${megabytes(before.heap)} of heap, ${megabytes(before.resident)} resident`,
      async () => {
        await sleep(1000)
        after = await target.collected()
        return after.heap < before.heap * 1.1 && after.resident < before.resident * 1.2
      },
    )
    const heap = `heap ${megabytes(before.heap)} before and ${megabytes(after.heap)} after`
    const resident = `resident ${megabytes(before.resident)} and ${megabytes(after.resident)}`
    return `${answers} requests answered, ${heap}, ${resident}`
  },
}
