/** A server with models in Python, and what its processes hold. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { python } from "../fixtures/python.ts"
import { Skipped } from "./Attack.ts"
import { Target } from "./Target.ts"

/** Starts a server whose processes have a temporary folder of their own, which is its `folder`. */
export const start = async (): Promise<Target> => {
  if (python === undefined) throw new Skipped("there is no Python with numpy")
  const folder = mkdtempSync(join(tmpdir(), "nereid-hard-"))
  // Node's cache of compiled code would be in the folder, too.
  const variables = { NEREID_PYTHON: python, TMPDIR: folder, NODE_DISABLE_COMPILE_CACHE: "1" }
  return Target.serve([], variables, folder, "test/hard/python-models.ts")
}

interface ProcessStatus {
  readonly state: string
  readonly parent: number
  /** Processor time in ticks of the kernel, of which a second has 100. */
  readonly time: number
}

/** From /proc/PID/stat; undefined for a process that has ended. */
const statusOf = (pid: number): ProcessStatus | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return { state: fields[0] ?? "", parent: Number(fields[1]), time: Number(fields[11]) }
  } catch {
    return undefined
  }
}

/** Whether the process runs. One that no parent has waited for does not. */
export const isRunning = (pid: number): boolean => {
  const status = statusOf(pid)
  return status !== undefined && status.state !== "Z" && status.state !== "X"
}

/** The running processes that the server has started. */
export const processesOf = ({ program }: Target): ReadonlyArray<number> =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => statusOf(pid)?.parent === program.pid && isRunning(pid))

export const processorTimeOf = (pid: number): number => statusOf(pid)?.time ?? 0

/** Resident memory of a process, in bytes. */
export const residentOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** Files in the temporary folder of the server and its processes. */
export const filesOf = ({ folder = "" }: Target): ReadonlyArray<string> => readdirSync(folder)
