/** A million requests that are nearly right. An oracle knows the result of each. */
import { fuzz } from "../conformance/fuzz/Fuzzing.ts"
import { type Attack, megabytes, repeated, sleep, until } from "./Attack.ts"
import { Target } from "./Target.ts"

/** Requests of one step, between which the time is checked. */
const step = 5000
const most = 1_000_000

class FuzzedTarget extends Target {
  readonly connect: number

  constructor(target: Target, connect: number) {
    super(target.program, target)
    this.connect = connect
  }
}

const start = async (): Promise<FuzzedTarget> => {
  const program = Target.program(["test/hard/conformance.ts"])
  const [, http, grpc, metrics, connect] = await program.match(/ports (\d+) (\d+) (\d+) (\d+)\n/)
  const ports = { http: Number(http), grpc: Number(grpc), metrics: Number(metrics) }
  return new FuzzedTarget(new Target(program, ports), Number(connect))
}

export const mutations: Attack = {
  name: `${most / 1e6} million requests that are nearly right`,
  seconds: 900,
  shortTest: "test/conformance/fuzz/fuzz.test.ts",
  start,
  run: async (target, { seconds, seed }) => {
    if (!(target instanceof FuzzedTarget)) throw new TypeError("The attack has the models of the conformance tests")
    const { http, grpc, metrics, connect } = target
    let [next, refused] = [0, 0]
    const send = async (count: number) => {
      const sent = await fuzz({ http, grpc, metrics, connect }, { seed, first: next, count })
      if (sent.problems.length > 0) throw new Error(`seed ${seed}: ${sent.problems.slice(0, 3).join("; ")}`)
      next += count
      refused += count - sent.counted.success
    }
    const first = seconds < 10 ? step / 5 : 4 * step
    await send(first)
    const before = await target.collected()
    await repeated(seconds, () => (next < most ? send(Math.min(step, first, most - next)) : sleep(seconds * 1000)))
    let after = before
    await until(
      `memory back to ${megabytes(before.heap)} of heap, ${megabytes(before.resident)} resident`,
      async () => {
        after = await target.collected()
        return after.heap < before.heap * 1.1 && after.resident < before.resident * 1.2
      },
    )
    const memory = `resident ${megabytes(before.resident)} before and ${megabytes(after.resident)} after`
    return `${next} requests, ${refused} refused, ${memory}`
  },
}
