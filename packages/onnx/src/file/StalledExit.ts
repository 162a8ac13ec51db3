/**
 * Lets the process exit while threads are blocked in the system. Node waits for every thread at its exit, so a file
 * system that never answers would keep the process for ever.
 */
import { writeSync } from "node:fs"
import { isMainThread } from "node:worker_threads"

let blocked = 0

/** A thread is blocked. */
export const add = (): void => {
  blocked += 1
  if (blocked === 1 && isMainThread) process.on("exit", exit)
}

/** A thread that was blocked is not any more. */
export const remove = (): void => {
  blocked -= 1
  if (blocked === 0) process.off("exit", exit)
}

/** After all other listeners: a new program in place of this one keeps the exit code, and ends the threads. */
const exit = (code: number): void => {
  try {
    process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {})
  } catch {
    // Not on this system.
  }
  try {
    writeSync(process.stderr.fd, "Exiting by force: file system calls have not returned\n")
  } catch {
    // stderr is closed.
  }
  process.kill(process.pid, "SIGKILL")
}
