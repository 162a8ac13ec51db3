/**
 * Downloads one object into a file and verifies its checksum. A large object is read in ranges side by side. A range
 * whose connection was cut goes on where it ended.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Result, type Semaphore } from "effect"
import { maxAttempts, pause } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import * as Checksum from "../store/Checksum.ts"
import type { ByteRange, ObjectStore, StoredObject } from "../store/ObjectStore.ts"
import * as PartialFile from "./PartialFile.ts"

export interface DownloadOptions {
  readonly store: ObjectStore
  readonly object: StoredObject
  /** File to write; what an earlier download has left of it is used. */
  readonly path: string
  /** Bytes of one request. */
  readonly rangeBytes: number
  /** Limits the requests of all downloads. */
  readonly requests: Semaphore.Semaphore
  /** Takes the number of bytes that have arrived. */
  readonly onBytes: (count: number) => void
}

/** Ranges of one object at a time. */
const maxRanges = 4

/** A connection that brings fewer bytes has made no progress: its end counts as a failed attempt. */
const progressBytes = 256 * 1024

export const download = Effect.fnUntraced(function* (options: DownloadOptions): Effect.fn.Return<void, StoreProblem> {
  const { object, path, rangeBytes } = options
  const checksum = yield* Effect.acquireUseRelease(
    ofFile(() => PartialFile.PartialFile.open(path, object.size, rangeBytes)),
    (file) => Effect.tap(contents(options, file), () => ofFile(() => file.sync())),
    (file) => Effect.promise(() => file.close().catch(() => undefined)),
  )
  yield* verify(path, checksum)
})

/** Fetches what is missing, and returns the checksum of the whole. */
const contents = Effect.fnUntraced(function* (
  options: DownloadOptions,
  file: PartialFile.PartialFile,
): Effect.fn.Return<Checksum.Checksum | undefined, StoreProblem> {
  const { store, object, requests, rangeBytes } = options
  const missing = file.missing
  const isWhole = object.size <= rangeBytes
  let checksum = object.checksum
  const onChecksum = (found: Checksum.Checksum | undefined) => void (checksum ??= found)
  const fetches = Effect.forEach(
    missing,
    (range) => requests.withPermit(fetchRange(options, file, range, isWhole, onChecksum)),
    { concurrency: maxRanges, discard: true },
  )
  yield* fetches
  yield* ofFile(() => file.recorded())
  // The reply with it may have been that of an earlier attempt, or of no attempt of this process.
  return checksum ?? (yield* requests.withPermit(store.checksum(object)))
})

const fetchRange = Effect.fnUntraced(function* (
  { store, object, onBytes }: DownloadOptions,
  file: PartialFile.PartialFile,
  range: ByteRange,
  isWhole: boolean,
  onChecksum: (checksum: Checksum.Checksum | undefined) => void,
): Effect.fn.Return<void, StoreProblem> {
  let position = range.start
  for (let attempt = 1; ; attempt++) {
    const before = position
    const rest = isWhole && position === 0 ? undefined : { start: position, end: range.end }
    const result = yield* Effect.result(
      store.get(object, rest, async ({ body, checksum }) => {
        onChecksum(checksum)
        for await (const bytes of body) {
          if (position + bytes.length > range.end) throw failed("TooManyBytes", "the store has sent too many bytes")
          await file.write(bytes, position).catch((error: unknown) => {
            throw failed("WriteFailed", `cannot write ${file.path}: ${errorMessage(error)}`)
          })
          position += bytes.length
          onBytes(bytes.length)
        }
        if (position < range.end) {
          throw new StoreProblem({ kind: "unreachable", code: "CutOff", message: "the connection ended too early" })
        }
      }),
    )
    if (Result.isSuccess(result)) break
    if (result.failure.kind !== "unreachable") return yield* result.failure
    if (position - before >= progressBytes) attempt = 1
    if (attempt >= maxAttempts) return yield* result.failure
    yield* pause(attempt, result.failure)
  }
  file.completed(range)
})

const verify = Effect.fnUntraced(function* (
  path: string,
  expected: Checksum.Checksum | undefined,
): Effect.fn.Return<void, StoreProblem> {
  if (expected === undefined) return
  const { algorithm, value } = expected
  const found = yield* Effect.tryPromise({
    try: (signal) => Checksum.ofFile(path, algorithm, signal),
    catch: (error) => failed("ReadFailed", errorMessage(error)),
  })
  if (found === value) return
  yield* ofFile(() => PartialFile.remove(path))
  return yield* failed("ChecksumMismatch", `its ${algorithm} checksum is ${found}, expected ${value}`)
})

const ofFile = <A>(run: () => Promise<A>): Effect.Effect<A, StoreProblem> =>
  Effect.tryPromise({ try: run, catch: (error) => failed("WriteFailed", errorMessage(error)) })

const failed = (code: string, message: string) => new StoreProblem({ kind: "failed", code, message })
