/**
 * Destination of log lines: stderr, or the end of a file. A file is written asynchronously. Lines that a slow disk
 * cannot take are dropped and counted. After a failure of the file, reported once, lines go to stderr.
 */
import { createWriteStream, type WriteStream } from "node:fs"
import { Effect, type Scope } from "effect"
import { ServeError } from "../error/ServeError.ts"
import * as StandardStreams from "./StandardStreams.ts"

export interface LogSink {
  readonly write: (line: string) => void
}

/** Bytes that may wait for the disk. */
const maxPendingBytes = 8 * 1024 * 1024

/** Writes to stderr. Lines that a closed stderr cannot take are lost, and counted (StandardStreams.ts). */
export const stderr: LogSink = { write: StandardStreams.writeError }

/** Until its scope closes. */
export const file = Effect.fnUntraced(function* (path: string): Effect.fn.Return<LogSink, ServeError, Scope.Scope> {
  const stream = yield* Effect.acquireRelease(open(path), close)
  let dropped = 0
  let failed = false
  stream.on("error", (error) => {
    if (!failed) stderr.write(`Cannot write to the log file ${path} any more: ${error.message}`)
    failed = true
  })
  return {
    write: (line) => {
      if (failed) return stderr.write(line)
      if (stream.writableLength > maxPendingBytes) dropped += 1
      else {
        const gap = dropped === 0 ? "" : `(${dropped} lines were dropped here: the file was too slow)\n`
        dropped = 0
        stream.write(`${gap}${line}\n`)
      }
    },
  }
})

const open = (path: string): Effect.Effect<WriteStream, ServeError> =>
  Effect.callback((resume) => {
    const stream = createWriteStream(path, { flags: "a" })
    const onError = (error: Error) =>
      resume(Effect.fail(new ServeError({ message: `cannot write the log file ${path}: ${error.message}` })))
    stream.once("error", onError)
    stream.once("open", () => {
      stream.off("error", onError)
      resume(Effect.succeed(stream))
    })
  })

/** Closes the stream after all pending writes. */
const close = (stream: WriteStream): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (stream.closed) return resume(Effect.void)
    stream.once("close", () => resume(Effect.void))
    stream.end()
  })
