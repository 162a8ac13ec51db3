/**
 * The last resort of a stop. SIGTERM or SIGINT lets requests in flight finish, at most for the drain timeout; code that
 * cannot be interrupted (a model that hangs in native code) could still keep the process for ever. So it ends by force a
 * grace time after the limit, or at once on a second signal.
 *
 * By SIGKILL, because `process.exit` while ONNX Runtime runs aborts with a core dump.
 */
import { writeSync } from "node:fs"

/** Milliseconds that models have to unload after the drain timeout. */
const grace = 5_000

const signals = ["SIGTERM", "SIGINT"] as const

/** From now on; `drainTimeout` in seconds. */
export const install = (drainTimeout: number): void => {
  let asked = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) return end(`${signal} came twice`)
    asked = true
    say(`Stopping on ${signal}: requests in flight may take ${drainTimeout} s more; a second signal ends at once`)
    const limit = Math.min(drainTimeout * 1000 + grace, 2 ** 31 - 1)
    setTimeout(() => end(`it did not stop within ${limit / 1000} s`), limit).unref()
  }
  for (const signal of signals) process.on(signal, onSignal)
}

const end = (reason: string): void => {
  say(`Ending by force: ${reason}`)
  process.kill(process.pid, "SIGKILL")
}

/** Written before the next line runs, as the process may not live to flush. */
const say = (message: string): void => {
  try {
    writeSync(process.stderr.fd, `${message}\n`)
  } catch {
    // Nobody reads it.
  }
}
