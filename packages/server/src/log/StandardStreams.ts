/**
 * Keeps the process running after the reader of its stdout or stderr has gone. Node reports each failed write as an
 * error event, which ends a process without a listener. Later writes try again: a reader may come back to a named pipe.
 */
import { constVoid } from "effect/Function"

let isGuarded = false
let failures = 0

/** Guards both streams until the process ends. Has no effect the second time. */
export const guard = (): void => {
  if (isGuarded) return
  isGuarded = true
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", () => {
      failures += 1
    })
  }
}

/** Writes to stdout and stderr that have failed since `guard`. */
export const failedWrites = (): number => failures

/** Writes a line to stderr. */
export const writeError = (line: string): void => void process.stderr.write(`${line}\n`, constVoid)
