/** A place of objects, as the mirror of a repository sees it: a listing, and the contents of objects in ranges. */
import { Effect } from "effect"
import type { RenewedCredentials } from "../credential/RenewedCredentials.ts"
import type { HttpReply } from "../http/HttpExchange.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { Checksum } from "./Checksum.ts"

export interface StoredObject {
  /** Path below that of the repository. A directory ends with a slash. */
  readonly key: string
  /** In bytes. */
  readonly size: number
  /** Changes with the contents: an ETag, a generation, an id. */
  readonly version: string
  /** If the listing has it. */
  readonly checksum?: Checksum | undefined
}

export interface ByteRange {
  readonly start: number
  /** The byte after the last. */
  readonly end: number
}

export interface ObjectReply {
  /** Of the whole object. */
  readonly checksum: Checksum | undefined
  readonly body: HttpReply["body"]
}

export interface ObjectStore {
  /** All objects below the path of the repository. */
  readonly list: Effect.Effect<ReadonlyArray<StoredObject>, StoreProblem>
  /** The checksum of an object; undefined if the store has none that can be compared. */
  readonly checksum: (object: StoredObject) => Effect.Effect<Checksum | undefined, StoreProblem>
  /** Reads an object of the listing, or a part of it. Fails if the object has changed since. */
  readonly get: <A>(
    object: StoredObject,
    range: ByteRange | undefined,
    read: (reply: ObjectReply) => Promise<A>,
  ) => Effect.Effect<A, StoreProblem>
}

/** Maximum objects of a repository. */
export const maxObjects = 100_000

/** Maximum pages of a listing. Pages may be empty. */
const maxPages = 1_000

/** Fails a listing that has grown too long. */
export const checkCount = (objects: number, pages: number): Effect.Effect<void, StoreProblem> => {
  if (objects <= maxObjects && pages <= maxPages) return Effect.void
  const [limit, counted] = objects > maxObjects ? [maxObjects, "objects"] : [maxPages, "pages of objects"]
  const message = `there are more than ${limit} ${counted}, which is the limit of a repository`
  return Effect.fail(new StoreProblem({ kind: "failed", code: "TooManyObjects", message }))
}

/** Sends a request, and once more with renewed credentials if they are refused. */
export const authorized = <C, A>(
  credentials: RenewedCredentials<C>,
  request: (credentials: C) => Effect.Effect<A, StoreProblem>,
): Effect.Effect<A, StoreProblem> => {
  const attempt = Effect.flatMap(credentials.current, (current) =>
    Effect.tapError(request(current), ({ kind }) =>
      Effect.sync(() => {
        if (kind === "denied") credentials.refused(current)
      }),
    ),
  )
  return Effect.catchIf(
    attempt,
    ({ kind }) => kind === "denied",
    () => attempt,
  )
}

/** The headers that limit a request to a range; none for a whole object. */
export const rangeHeaders = (range: ByteRange | undefined): Readonly<Record<string, string>> =>
  range === undefined ? {} : { range: `bytes=${range.start}-${range.end - 1}` }

/** Checks that a reply with success has the bytes that were requested, as they are stored. */
export const checkReply = (
  { status, headers }: Omit<HttpReply, "body">,
  { size }: StoredObject,
  range: ByteRange | undefined,
): StoreProblem | undefined => {
  const failed = (code: string, message: string) => new StoreProblem({ kind: "failed", code, message })
  const encoding = headers["content-encoding"]
  if (encoding !== undefined && encoding !== "identity" && encoding !== "aws-chunked") {
    return failed("ContentEncoding", `the object is stored with Content-Encoding ${encoding}, which is not supported`)
  }
  if (range === undefined) {
    const length = headers["content-length"]
    if (status === 200 && (length === undefined || Number(length) === size)) return undefined
    if (status !== 200)
      return failed("NoContents", `the store answered with status ${status} to a request for an object`)
    return new StoreProblem({ kind: "changed", code: "OtherSize", message: `the object has ${length} bytes now` })
  }
  if (status !== 206) return failed("NoRanges", `the store answered with status ${status} to a request for a range`)
  const expected = `bytes ${range.start}-${range.end - 1}/`
  const found = headers["content-range"] ?? ""
  if (!found.startsWith(expected)) return failed("OtherRange", `the store answered with range '${found}'`)
  const total = found.slice(expected.length)
  if (total === "*" || Number(total) === size) return undefined
  return new StoreProblem({ kind: "changed", code: "OtherSize", message: `the object has ${total} bytes now` })
}

/** An object that was replaced while it was read. */
export const changed = (message: string): StoreProblem =>
  new StoreProblem({ kind: "changed", code: "PreconditionFailed", message })
