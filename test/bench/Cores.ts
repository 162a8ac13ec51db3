/**
 * Assignment of processes to cores: servers on one, load on another, so that they do not compete. Requires Linux's
 * taskset and two cores; otherwise the system schedules all processes.
 */
import { execFileSync } from "node:child_process"

export interface Cores {
  readonly server: number
  readonly load: number
}

/** Pins this process to the last core that it may use, and gives the servers the first. */
export const pin = (): Cores | undefined => {
  try {
    const [server, ...others] = allowed()
    const load = others.at(-1)
    if (server === undefined || load === undefined) return undefined
    taskset("-a", "-c", "-p", String(load), String(process.pid))
    return { server, load }
  } catch {
    return undefined
  }
}

/** From `… affinity list: 0,2-3`. */
const allowed = (): ReadonlyArray<number> =>
  (taskset("-c", "-p", String(process.pid)).split(": ").at(-1) ?? "").split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })

/** The command line that runs another one on one core. */
export const onCore = (core: number | string | undefined, command: ReadonlyArray<string>): ReadonlyArray<string> =>
  core === undefined ? command : [program, "-c", String(core), ...command]

const program = "taskset"

const taskset = (...args: ReadonlyArray<string>): string =>
  execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
