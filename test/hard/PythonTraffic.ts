/** Callers of the models in Python, and what a server with such models holds. */
import { readdirSync } from "node:fs"
import { Agent } from "node:http"
import { megabytes, until } from "./Attack.ts"
import { type Answer, http, httpBinary } from "./Callers.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import * as PythonTarget from "./PythonTarget.ts"
import type { Target } from "./Target.ts"

const counted = (value: number) =>
  JSON.stringify({ inputs: [{ name: "COUNT", datatype: "INT32", shape: [1, 1], data: [value] }] })

export const callCounted = ({ http: port }: Target, value: number, agent?: Agent) =>
  http(port, "models/counted/infer", counted(value), agent)

export const misbehave = ({ http: port }: Target, text: string): Promise<Answer> => {
  const inputs = [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [text] }]
  return http(port, "models/misbehaving/infer", JSON.stringify({ inputs }))
}

/** Whether the model returned as many bytes as it received, and the same; otherwise what it answered. */
export const callBlock = async ({ http: port }: Target, length: number, agent?: Agent) => {
  const bytes = Buffer.alloc(length, length % 251)
  const { status, output } = await httpBinary(port, "block", { name: "BLOCK", datatype: "UINT8", bytes }, agent)
  if (status !== 200) return { isRight: false, text: output.toString() }
  return { isRight: output.equals(bytes), text: `${output.length} of ${length} bytes, or others` }
}

/** Names of the server in the system's shared memory: the memory that it shares with processes has none. */
export const sharedNames = () => readdirSync("/dev/shm").filter((name) => name.includes("nereid"))

/** Whether an error says that its process died, or that all processes are being restarted. */
const tellsDeath = (text: string) =>
  /Stub process '(counted_0_[01]|block_0_0)' is not healthy\.|is not at ready state/.test(text)

interface Traffic {
  readonly answers: number
  /** Those of requests whose process died. */
  readonly failures: number
}

/** Runs `work` while 16 callers, half of them over gRPC, send requests to models in Python, some of them large. */
export const traffic = async (target: Target, work: () => Promise<unknown>): Promise<Traffic> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const session = GrpcCalls.open(target.grpc)
  const over = new AbortController()
  let answers = 0
  let failures = 0
  const count = (isRight: boolean, text: string) => {
    answers += 1
    if (isRight) return
    if (!tellsDeath(text)) throw new Error(`answer ${answers} does not tell of a death: ${text}`)
    failures += 1
  }
  const overHttp = async (_: unknown, caller: number) => {
    for (let value = caller; !over.signal.aborted; value += 16) {
      const { status, text } = await callCounted(target, value, agent)
      count(status === 200 && text.includes(`"data":[${value}]`), text)
    }
  }
  const withBlocks = async (_: unknown, caller: number) => {
    for (let number = caller; !over.signal.aborted; number += 16) {
      const { isRight, text } = await callBlock(target, 20_000 + (number % 50) * 10_000, agent)
      count(isRight, text)
    }
  }
  const overGrpc = async (_: unknown, caller: number) => {
    while (!over.signal.aborted) {
      const { status, message } = await GrpcCalls.call(
        session,
        GrpcCalls.framed("counted", "COUNT", caller, { shape: [1n, 1n] }),
      )
      count(status === "0", decodeURIComponent(message) || `gRPC status ${status}`)
    }
  }
  const callers = [
    ...Array.from({ length: 4 }, overHttp),
    ...Array.from({ length: 4 }, withBlocks),
    ...Array.from({ length: 8 }, overGrpc),
  ]
  try {
    await Promise.all([work(), ...callers].map((one) => one.finally(() => over.abort())))
  } finally {
    agent.destroy()
    session.destroy()
  }
  return { answers, failures }
}

/** Waits until the processes of all models answer. */
export const works = async (target: Target) => {
  await until("four processes", () => PythonTarget.processesOf(target).length === 4)
  await until("answers", async () => {
    const answers = await Promise.all([1, 2, 3, 4].map((value) => callCounted(target, value)))
    const others = [(await misbehave(target, "echo")).status === 200, (await callBlock(target, 100_000)).isRight]
    return answers.every(({ status }) => status === 200) && others.every(Boolean)
  })
}

/** Fails if the server has more memory than before, beside what is garbage, or anything else. */
export const isAsBefore = async (target: Target, before: { readonly resident: number; readonly heap: number }) => {
  let after = before
  await until(`memory of about ${megabytes(before.resident)} again`, async () => {
    after = await target.collected()
    return after.resident < before.resident * 1.2 && after.heap < before.heap * 1.2
  })
  return `resident ${megabytes(before.resident)} before and ${megabytes(after.resident)} after, heap ${megabytes(before.heap)} and ${megabytes(after.heap)}`
}
