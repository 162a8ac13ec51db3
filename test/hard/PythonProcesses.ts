/** Models in Python: processes that are killed, leak, outlive their server, or do what code must not do. */
import { mkdirSync, readdirSync, rmSync } from "node:fs"
import { Agent } from "node:http"
import { Random } from "../conformance/fuzz/Random.ts"
import { type Attack, megabytes, repeated, sleep, until } from "./Attack.ts"
import { type Answer, beside, http, httpBinary } from "./Callers.ts"
import { setLimit } from "./Disks.ts"
import * as GrpcCalls from "./GrpcCalls.ts"
import * as PythonTarget from "./PythonTarget.ts"
import type { Target } from "./Target.ts"

const counted = (value: number) =>
  JSON.stringify({ inputs: [{ name: "COUNT", datatype: "INT32", shape: [1, 1], data: [value] }] })

const callCounted = ({ http: port }: Target, value: number, agent?: Agent) =>
  http(port, "models/counted/infer", counted(value), agent)

const misbehave = ({ http: port }: Target, text: string): Promise<Answer> => {
  const inputs = [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: [text] }]
  return http(port, "models/misbehaving/infer", JSON.stringify({ inputs }))
}

/** Whether the model returned as many bytes as it received, and the same; otherwise what it answered. */
const callBlock = async ({ http: port }: Target, length: number, agent?: Agent) => {
  const bytes = Buffer.alloc(length, length % 251)
  const { status, output } = await httpBinary(port, "block", { name: "BLOCK", datatype: "UINT8", bytes }, agent)
  if (status !== 200) return { isRight: false, text: output.toString() }
  return { isRight: output.equals(bytes), text: `${output.length} of ${length} bytes, or others` }
}

/** Names of the server in the system's shared memory: the memory that it shares with processes has none. */
const sharedNames = () => readdirSync("/dev/shm").filter((name) => name.includes("nereid"))

/** Whether an error says that its process died, or that all processes are being restarted. */
const tellsDeath = (text: string) =>
  /Stub process '(counted_0_[01]|block_0_0)' is not healthy\.|is not at ready state/.test(text)

interface Traffic {
  readonly answers: number
  /** Those of requests whose process died. */
  readonly failures: number
}

/** Runs `work` while 16 callers, half of them over gRPC, send requests to models in Python, some of them large. */
const traffic = async (target: Target, work: () => Promise<unknown>): Promise<Traffic> => {
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
const works = async (target: Target) => {
  await until("four processes", () => PythonTarget.processesOf(target).length === 4)
  await until("answers", async () => {
    const answers = await Promise.all([1, 2, 3, 4].map((value) => callCounted(target, value)))
    const others = [(await misbehave(target, "echo")).status === 200, (await callBlock(target, 100_000)).isRight]
    return answers.every(({ status }) => status === 200) && others.every(Boolean)
  })
}

/** Fails if the server has more memory than before, beside what is garbage, or anything else. */
const isAsBefore = async (target: Target, before: { readonly resident: number; readonly heap: number }) => {
  let after = before
  await until(`memory of about ${megabytes(before.resident)} again`, async () => {
    after = await target.collected()
    return after.resident < before.resident * 1.2 && after.heap < before.heap * 1.2
  })
  return `resident ${megabytes(before.resident)} before and ${megabytes(after.resident)} after, heap ${megabytes(before.heap)} and ${megabytes(after.heap)}`
}

export const kills: Attack = {
  name: "random kills of processes in Python, under 16 callers",
  seconds: 200,
  start: PythonTarget.start,
  run: async (target, { seconds, seed }) => {
    const random = new Random(seed)
    await works(target)
    // One kill per second of a whole run.
    const rounds = async (count: number) => {
      for (let killed = 0; killed < count;) {
        await sleep(random.below(200))
        const pids = PythonTarget.processesOf(target)
        if (pids.length === 0) continue
        process.kill(random.pick(pids), "SIGKILL")
        killed += 1
        // The processes may be in any state, but one in a row of restarts must succeed.
        if (random.chance(0.5)) await until("an answer", async () => (await callCounted(target, 1)).status === 200)
        await misbehave(target, "echo")
      }
    }
    const count = Math.max(10, seconds)
    await traffic(target, () => rounds(Math.ceil(count / 10)))
    await works(target)
    const before = await target.collected()
    const openFiles = target.openFiles
    const { answers, failures } = await traffic(target, () => rounds(count))
    await works(target)
    // A process that has just been started has a folder for its socket.
    await until("no file is left", () => PythonTarget.filesOf(target).length === 0)
    await until("the descriptors are closed", () => target.openFiles <= openFiles)
    await until("nothing is left in shared memory", () => sharedNames().length === 0)
    return `${count} kills, ${answers} answers, ${failures} of them tell of a death, ${await isAsBefore(target, before)}`
  },
}

export const leaks: Attack = {
  name: "100,000 calls of models in Python",
  seconds: 120,
  start: PythonTarget.start,
  run: async (target, { seconds }) => {
    await works(target)
    const calls = async (count: number) => {
      let begun = 0
      const agent = new Agent({ keepAlive: true, maxSockets: 16 })
      const caller = async () => {
        while (begun < count) {
          begun += 1
          if (begun % 10 === 0) {
            const { isRight, text } = await callBlock(target, 64 * 1024 + begun, agent)
            if (!isRight) throw new Error(`a large call was answered with ${text}`)
            continue
          }
          const { status, text } = await callCounted(target, begun, agent)
          if (status !== 200) throw new Error(`a call was answered with ${status}: ${text}`)
        }
      }
      await Promise.all(Array.from({ length: 16 }, caller))
      agent.destroy()
    }
    const count = seconds < 60 ? 2000 : 100_000
    await calls(count / 10)
    await until("no file is left", () => PythonTarget.filesOf(target).length === 0)
    await until("the connections are closed", () => target.openFiles < 60)
    const before = await target.collected()
    const pids = PythonTarget.processesOf(target)
    const state = () =>
      JSON.stringify([
        sharedNames(),
        PythonTarget.processesOf(target),
        PythonTarget.filesOf(target),
        pids.map(PythonTarget.descriptorsOf),
      ])
    const openFiles = target.openFiles
    const held = state()
    const resident = pids.map(PythonTarget.residentOf)
    await calls(count)
    await until("descriptors, processes and files as before", () => {
      return target.openFiles <= openFiles && state() === held
    })
    const grown = pids.map((pid, index) => PythonTarget.residentOf(pid) - (resident[index] ?? 0))
    if (Math.max(...grown) > 8e6) throw new Error(`a process has grown by ${Math.max(...grown)} bytes`)
    return `${count} calls, ${await isAsBefore(target, before)}, processes grew by ${grown.map(megabytes).join(", ")}`
  },
}

export const orphans: Attack = {
  name: "a server with models in Python that is killed",
  seconds: 10,
  start: PythonTarget.start,
  run: async (target) => {
    await works(target)
    const pids = PythonTarget.processesOf(target)
    // One process computes without end, and its other threads cannot run.
    const looping = misbehave(target, "hold the lock").catch(() => undefined)
    await until("a process computes", async () => {
      const before = pids.map(PythonTarget.processorTimeOf)
      await sleep(100)
      return pids.some((pid, index) => PythonTarget.processorTimeOf(pid) - (before[index] ?? 0) > 2)
    })
    target.program.signal("SIGKILL")
    await target.program.ended
    await looping
    const endedAt = performance.now()
    await until("the processes have ended", () => !pids.some(PythonTarget.isRunning))
    const files = PythonTarget.filesOf(target)
    if (files.length > 0) throw new Error(`files are left: ${files.join(", ")}`)
    return `${pids.length} processes ended within ${Math.round(performance.now() - endedAt)} ms, no file is left`
  },
}

/** Commands of python_models.py, and what the error of each says; undefined for one that succeeds. */
const commands: ReadonlyArray<readonly [command: string, error: RegExp | undefined]> = [
  ["exit", /is not healthy/],
  ["raise SystemExit", /SystemExit: 3/],
  ["segmentation fault", /is not healthy/],
  ["abort", /is not healthy/],
  ["kill", /is not healthy/],
  ["stop", /did not end within 10000 ms/],
  ["loop", /did not end within 10000 ms/],
  ["hold the lock", /did not end within 10000 ms/],
  ["allocate", /MemoryError/],
  ["hoard", /MemoryError/],
  ["recurse", /RecursionError/],
  ["close", /is not healthy/],
  ["garbage", /is not healthy/],
  ["print", undefined],
  ["leave a child", /is not healthy/],
]

export const misconduct: Attack = {
  name: "code in Python that exits, crashes, hangs, hoards and prints, beside other models",
  seconds: 60,
  start: PythonTarget.start,
  run: async (target, { seconds }) => {
    await works(target)
    // Pools, compiled code and the arenas of the C library have their sizes under load after it.
    await beside(target, () => traffic(target, () => sleep(2_000)))
    const before = await target.collected()
    let count = 0
    const round = async () => {
      for (const [command, error] of commands) {
        const { status, text } = await misbehave(target, command)
        const isRight = error === undefined ? status === 200 : status === 500 && error.test(text)
        if (!isRight) throw new Error(`"${command}" was answered with ${status}: ${text}`)
        await until(`the model works after "${command}"`, async () => (await misbehave(target, "echo")).status === 200)
        count += 1
      }
    }
    const untouched = PythonTarget.processesOf(target).length
    const answers = await beside(target, async () => {
      const { failures } = await traffic(target, () => repeated(seconds, round))
      if (failures > 0) throw new Error(`${failures} requests of another model failed`)
    })
    await until("no process more", () => PythonTarget.processesOf(target).length === untouched)
    return `${count} commands, ${answers} requests of a model in code answered, ${await isAsBefore(target, before)}`
  },
}

export const noSpace: Attack = {
  name: "no space for files of code in Python, and no temporary folder",
  seconds: 10,
  start: PythonTarget.start,
  run: async (target) => {
    await works(target)
    const folder = target.folder ?? ""
    for (const pid of PythonTarget.processesOf(target)) setLimit(pid, "--fsize=0:")
    const refused = await misbehave(target, "write")
    if (refused.status !== 500 || !refused.text.includes("File too large"))
      throw new Error(`a full disk: ${refused.text}`)
    if ((await misbehave(target, "echo")).status !== 200) throw new Error("a full disk has ended the process")
    // A process that dies cannot be started again without a folder for its socket.
    rmSync(folder, { recursive: true })
    const died = await misbehave(target, "exit")
    if (died.status !== 500) throw new Error(`a death without a folder was answered with ${died.status}`)
    await target.program.match(/misbehaving_0_0 failed to restart \(2 of 1000\)/)
    const { status } = await callCounted(target, 1)
    if (status !== 200) throw new Error(`another model answered with ${status}`)
    mkdirSync(folder)
    await works(target)
    await until("no file is left", () => PythonTarget.filesOf(target).length === 0)
    return "the write failed alone; the model works again once there is a folder"
  },
}
