/**
 * Where this process and its children run, for bench.ts. By itself, the system places them on one core or on two, for
 * minutes and not all of them alike.
 */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"

export interface Placement {
  readonly name: string
  /** Places this process and those that it has started. */
  readonly take: () => void
}

const taskset = (core: number, pid: number | string): void =>
  void execFileSync("taskset", ["-a", "-c", "-p", String(core), String(pid)], { stdio: "ignore" })

const children = (): ReadonlyArray<string> =>
  readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean)

const on = (core: number, coreOfChildren: number) => () => {
  taskset(core, process.pid)
  for (const pid of children()) taskset(coreOfChildren, pid)
}

const isPossible = (): boolean => {
  try {
    execFileSync("taskset", ["-p", String(process.pid)], { stdio: "ignore" })
    return availableParallelism() > 1 && children().length >= 0
  } catch {
    return false
  }
}

/** One core, and two; where that is not possible, wherever the system puts the processes. */
export const all: ReadonlyArray<Placement> = isPossible()
  ? [
      { name: "all on one core", take: on(0, 0) },
      { name: "the server on one core, Python on another", take: on(0, 1) },
    ]
  : [{ name: "where the system puts them", take: () => {} }]
