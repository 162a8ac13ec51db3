/**
 * Forces the exit of a process whose graceful stop hangs. SIGTERM or SIGINT lets requests in flight finish, up to the
 * drain timeout. A model that hangs in native code could still keep the process alive. The process is therefore killed
 * a grace period after the limit, or at once on a second signal. An unrecoverable model error stops the process in the
 * same way.
 *
 * By SIGKILL, because `process.exit` while ONNX Runtime runs aborts with a core dump. The kernel ignores a SIGKILL that
 * the first process of a container sends to itself, which therefore exits.
 */
import { writeSync } from "node:fs"
import { constants } from "node:os"

/** Milliseconds for models to unload after the drain timeout. */
const grace = 5_000

const signals = ["SIGTERM", "SIGINT"] as const

export interface ForcedExit {
  /** Stops as a signal does, for this reason, a clause. */
  readonly stop: (reason: string) => void
  /** Returns the reason of `stop`; undefined for a signal. */
  readonly reason: () => string | undefined
}

/** From now on; `drainTimeout` in seconds. */
export const install = (drainTimeout: number): ForcedExit => {
  let first: NodeJS.Signals | undefined
  let reason: string | undefined
  const onSignal = (signal: NodeJS.Signals) => {
    if (first !== undefined) {
      const isAgain = signal === first && reason === undefined
      return end(`received ${signal} ${isAgain ? "twice" : "while stopping"}`)
    }
    first = signal
    setTimeout(
      () => say(`${reason === undefined ? "A second signal" : "A signal"} ends the process at once`),
      1000,
    ).unref()
    const limit = Math.min(drainTimeout * 1000 + grace, 2 ** 31 - 1)
    setTimeout(() => end(`the process did not stop within ${limit / 1000} s`), limit).unref()
  }
  for (const signal of signals) process.on(signal, onSignal)
  return {
    stop: (cause) => {
      if (first !== undefined) return
      reason = cause
      // Notifies everything that waits for a signal.
      process.emit("SIGTERM", "SIGTERM")
    },
    reason: () => reason,
  }
}

const end = (reason: string): void => {
  say(`Exiting by force: ${reason}`)
  process.kill(process.pid, "SIGKILL")
  if (process.pid === 1) process.exit(128 + constants.signals.SIGKILL)
}

/** Written before the next line runs, as the process may not live to flush. */
const say = (message: string): void => {
  try {
    writeSync(process.stderr.fd, `${message}\n`)
  } catch {
    // stderr is closed.
  }
}
