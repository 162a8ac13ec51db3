/** A bucket of Google Cloud Storage, over its JSON interface. */
import { Effect } from "effect"
import type { Environment } from "../credential/Environment.ts"
import * as GoogleCredentials from "../credential/GoogleCredentials.ts"
import { RenewedCredentials } from "../credential/RenewedCredentials.ts"
import { encode, encodeQuery, type Query } from "../http/Encoding.ts"
import { type HttpReply, type HttpRequest, send, sendForText, text } from "../http/HttpExchange.ts"
import * as JsonReply from "../http/JsonReply.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import * as Checksum from "./Checksum.ts"
import {
  authorized,
  type ByteRange,
  changed,
  checkCount,
  checkReply,
  type ObjectReply,
  type ObjectStore,
  rangeHeaders,
  type StoredObject,
} from "./ObjectStore.ts"

export interface GoogleOptions {
  readonly bucket: string
  /** Path in the bucket, without slashes at its ends. */
  readonly path: string
  /** The variables to find credentials and an endpoint by. */
  readonly environment: Effect.Effect<Environment, StoreProblem>
}

interface GoogleAccess {
  readonly token: GoogleCredentials.GoogleToken
  readonly origin: string
}

export class GoogleStore implements ObjectStore {
  readonly #prefix: string
  readonly #objects: string
  readonly #access: RenewedCredentials<GoogleAccess>

  constructor({ bucket, path, environment }: GoogleOptions) {
    this.#prefix = path === "" ? "" : `${path}/`
    this.#objects = `/storage/v1/b/${encode(bucket)}/o`
    this.#access = new RenewedCredentials(
      Effect.gen(function* () {
        const variables = yield* environment
        const { value: token, expiresAt } = yield* GoogleCredentials.find(variables)
        return { value: { token, origin: originOf(variables) }, expiresAt }
      }),
    )
  }

  get list(): Effect.Effect<ReadonlyArray<StoredObject>, StoreProblem> {
    return Effect.gen({ self: this }, function* () {
      const objects: Array<StoredObject> = []
      let pages = 0
      for (let token: string | undefined = ""; token !== undefined;) {
        const page: unknown = yield* this.#page(token)
        for (const item of JsonReply.items(JsonReply.field(page, "items"))) {
          const object = objectOf(item, this.#prefix)
          if (object === undefined) return yield* invalid("an entry is not valid")
          objects.push(object)
        }
        yield* checkCount(objects.length, ++pages)
        token = JsonReply.text(page, "nextPageToken")
      }
      return objects
    })
  }

  /** The listing has it. */
  checksum({ checksum }: StoredObject): Effect.Effect<Checksum.Checksum | undefined> {
    return Effect.succeed(checksum)
  }

  get<A>(
    object: StoredObject,
    range: ByteRange | undefined,
    read: (reply: ObjectReply) => Promise<A>,
  ): Effect.Effect<A, StoreProblem> {
    const { checksum, key, version } = object
    const query: Query = [
      ["alt", "media"],
      ["ifGenerationMatch", version],
    ]
    const path = `${this.#objects}/${encode(this.#prefix + key)}?${encodeQuery(query)}`
    // Without this header, the store decompresses objects that are stored compressed.
    const headers = { ...rangeHeaders(range), "accept-encoding": "gzip" }
    return authorized(this.#access, (access) =>
      send(requestOf(access, path, headers), async (reply) => {
        if (reply.status !== 200 && reply.status !== 206) throw problemOf(reply, await text(reply))
        const problem = checkReply(reply, object, range)
        if (problem !== undefined) throw problem
        const generation = reply.headers["x-goog-generation"]
        if (generation !== undefined && generation !== version) throw changed(`its generation is ${generation} now`)
        return read({ checksum, body: reply.body })
      }),
    )
  }

  #page(token: string) {
    const query: Query = [
      ["prefix", this.#prefix],
      ["fields", "items(name,size,generation,md5Hash,crc32c),nextPageToken"],
      ...(token === "" ? [] : [["pageToken", token] as const]),
    ]
    const page = authorized(this.#access, (access) =>
      Effect.flatMap(sendForText(requestOf(access, `${this.#objects}?${encodeQuery(query)}`, {})), (reply) => {
        if (reply.status !== 200) return Effect.fail(problemOf(reply, reply.text))
        const parsed = JsonReply.parse(reply.text)
        return parsed === undefined ? Effect.fail(invalid("it is not JSON")) : Effect.succeed(parsed)
      }),
    )
    return retrying(page)
  }
}

const originOf = (environment: Environment): string => {
  const emulator = environment["STORAGE_EMULATOR_HOST"]
  if (emulator === undefined || emulator === "") return "https://storage.googleapis.com"
  return new URL(emulator.includes("://") ? emulator : `http://${emulator}`).origin
}

const requestOf = (
  { token, origin }: GoogleAccess,
  path: string,
  headers: Readonly<Record<string, string>>,
): HttpRequest => ({
  method: "GET",
  origin,
  path,
  headers: token === undefined ? headers : { ...headers, authorization: `Bearer ${token}` },
})

const objectOf = (item: unknown, prefix: string): StoredObject | undefined => {
  const [name, generation] = [JsonReply.text(item, "name"), JsonReply.text(item, "generation")]
  const size = JsonReply.number(item, "size") ?? 0
  if (name === undefined || !name.startsWith(prefix) || !Number.isSafeInteger(size) || size < 0) return undefined
  // Objects that were composed of others have no MD5.
  const checksum =
    Checksum.ofBase64("md5", JsonReply.text(item, "md5Hash")) ??
    Checksum.ofBase64("crc32c", JsonReply.text(item, "crc32c"))
  return { key: name.slice(prefix.length), size, version: generation ?? "", checksum }
}

const problemOf = ({ status, headers }: Omit<HttpReply, "body">, body: string): StoreProblem => {
  const error = JsonReply.field(JsonReply.parse(body), "error")
  const [first] = JsonReply.items(JsonReply.field(error, "errors"))
  return ReplyProblem.make({
    status,
    headers,
    code: JsonReply.text(first, "reason"),
    message: JsonReply.text(error, "message"),
  })
}

const invalid = (reason: string) =>
  new StoreProblem({ kind: "failed", code: "InvalidListing", message: `the listing cannot be read: ${reason}` })
