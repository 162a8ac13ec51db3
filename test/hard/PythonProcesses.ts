/** Models in Python whose processes are killed, leak, or outlive their server. */
import { Agent } from "node:http"
import { Random } from "../conformance/fuzz/Random.ts"
import { type Attack, megabytes, sleep, until } from "./Attack.ts"
import * as PythonTarget from "./PythonTarget.ts"
import { callBlock, callCounted, isAsBefore, misbehave, sharedNames, traffic, works } from "./PythonTraffic.ts"

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
