/** CPU time of a process group, as Linux counts it: of a server whose models are processes too. */
import { readdirSync, readFileSync } from "node:fs"

/** Of one unit of `/proc/<pid>/stat`, in microseconds. */
const tick = 10_000

/** Returns the CPU time of the living processes of the group, in microseconds. */
export const cpu = (group: number): number => {
  let ticks = 0
  for (const name of readdirSync("/proc")) {
    const fields = /^\d+$/u.test(name) ? stat(name) : undefined
    if (fields?.[2] === String(group)) ticks += Number(fields[11]) + Number(fields[12])
  }
  return ticks * tick
}

/** The fields behind the name of the program, which may have spaces; undefined if the process has ended. */
const stat = (pid: string): ReadonlyArray<string> | undefined => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")
  } catch {
    return undefined
  }
}
