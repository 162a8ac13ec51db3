/** Models in Python that do what code must not do. */
import { mkdirSync, rmSync } from "node:fs"
import { type Attack, repeated, sleep, until } from "./Attack.ts"
import { beside } from "./Callers.ts"
import { setLimit } from "./Disks.ts"
import * as PythonTarget from "./PythonTarget.ts"
import { callCounted, isAsBefore, misbehave, traffic, works } from "./PythonTraffic.ts"

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
