/**
 * Files of a model on Hugging Face, or on a server with its interface, at one revision. A listing begins with the
 * commit that the revision stands for, so its files belong together.
 */
import { Effect } from "effect"
import type { Environment } from "../credential/Environment.ts"
import { encode, encodePath } from "../http/Encoding.ts"
import { type HttpReply, type HttpRequest, send, sendForText, text } from "../http/HttpExchange.ts"
import * as JsonReply from "../http/JsonReply.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import type { Checksum } from "./Checksum.ts"
import {
  type ByteRange,
  checkCount,
  checkReply,
  type ObjectReply,
  type ObjectStore,
  rangeHeaders,
  type StoredObject,
} from "./ObjectStore.ts"

export interface HubOptions {
  /** Organization and name. */
  readonly model: string
  readonly revision: string
  /** Path of the repository, without slashes at its ends. */
  readonly path: string
  readonly environment: Environment
}

interface Listing {
  readonly commit: string
  readonly objects: ReadonlyArray<StoredObject>
}

/** Redirects of a request: to the storage of large files. */
const maxRedirects = 5

export class HubStore implements ObjectStore {
  readonly #model: string
  readonly #revision: string
  readonly #path: string
  readonly #origin: string
  /** Path of the server below its origin, as mirrors have it. */
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  #last: Listing | undefined
  /** The commit of each object of a listing. A later listing may have another one while objects are read. */
  readonly #commits = new WeakMap<StoredObject, string>()

  constructor({ model, revision, path, environment }: HubOptions) {
    const token = environment["HF_TOKEN"]
    this.#model = model
    this.#revision = revision
    this.#path = path
    const { origin, pathname } = new URL(environment["HF_ENDPOINT"] || "https://huggingface.co")
    this.#origin = origin
    this.#base = pathname.replace(/\/+$/, "")
    this.#headers = token ? { authorization: `Bearer ${token}` } : {}
  }

  get list(): Effect.Effect<ReadonlyArray<StoredObject>, StoreProblem> {
    return Effect.gen({ self: this }, function* () {
      const info = yield* this.#json(`${this.#base}/api/models/${this.#model}/revision/${encode(this.#revision)}`)
      const commit = JsonReply.text(info.document, "sha")
      if (commit === undefined || !/^[0-9a-f]{7,64}$/.test(commit)) return yield* invalid("a revision has no commit")
      if (this.#last?.commit === commit) return this.#last.objects
      const objects: Array<StoredObject> = []
      let pages = 0
      const folder = this.#path === "" ? "" : `/${encodePath(this.#path)}`
      let next: string | undefined = `${this.#base}/api/models/${this.#model}/tree/${commit}${folder}?recursive=true`
      while (next !== undefined) {
        const page: JsonPage = yield* this.#json(next)
        for (const item of JsonReply.items(page.document)) {
          const object = objectOf(item, this.#path)
          if (object === undefined) return yield* invalid("an entry is not valid")
          this.#commits.set(object, commit)
          objects.push(object)
        }
        yield* checkCount(objects.length, ++pages)
        next = page.next
      }
      this.#last = { commit, objects }
      return objects
    })
  }

  /** The listing has it. */
  checksum({ checksum }: StoredObject): Effect.Effect<Checksum | undefined> {
    return Effect.succeed(checksum)
  }

  get<A>(
    object: StoredObject,
    range: ByteRange | undefined,
    read: (reply: ObjectReply) => Promise<A>,
  ): Effect.Effect<A, StoreProblem> {
    const file = encodePath(this.#path === "" ? object.key : `${this.#path}/${object.key}`)
    const revision = this.#commits.get(object) ?? this.#last?.commit ?? this.#revision
    const path = `${this.#base}/${this.#model}/resolve/${encode(revision)}/${file}`
    const headers = { ...this.#headers, ...rangeHeaders(range), "accept-encoding": "identity" }
    const follow = (request: HttpRequest, redirects: number): Effect.Effect<A, StoreProblem> =>
      Effect.flatMap(
        send(request, async (reply): Promise<{ readonly done: A } | { readonly location: string }> => {
          const location = reply.headers.location
          if (reply.status >= 300 && reply.status < 400 && location !== undefined) return { location }
          if (reply.status !== 200 && reply.status !== 206) throw problemOf(reply, await text(reply))
          const problem = checkReply(reply, object, range)
          if (problem !== undefined) throw problem
          return { done: await read({ checksum: object.checksum, body: reply.body }) }
        }),
        (result) => {
          if ("done" in result) return Effect.succeed(result.done)
          const target = URL.parse(result.location, request.origin)
          if (target === null || redirects === maxRedirects || !/^https?:$/.test(target.protocol)) {
            return Effect.fail(
              new StoreProblem({ kind: "failed", code: "Redirect", message: "a redirect cannot be followed" }),
            )
          }
          const { authorization: _, ...others } = request.headers ?? {}
          const isSame = target.origin === request.origin
          return follow(
            {
              method: "GET",
              origin: target.origin,
              path: target.pathname + target.search,
              // A token is for the server that it was given for.
              headers: isSame ? (request.headers ?? {}) : others,
            },
            redirects + 1,
          )
        },
      )
    return follow({ method: "GET", origin: this.#origin, path, headers }, 0)
  }

  #json(path: string): Effect.Effect<JsonPage, StoreProblem> {
    const request = { method: "GET", origin: this.#origin, path, headers: this.#headers } as const
    const page = Effect.flatMap(sendForText(request), (reply): Effect.Effect<JsonPage, StoreProblem> => {
      if (reply.status !== 200) return Effect.fail(problemOf(reply, reply.text))
      const document = JsonReply.parse(reply.text)
      if (document === undefined) return Effect.fail(invalid("it is not JSON"))
      const link = reply.headers["link"]
      const [, next] = /<([^>]*)>\s*;\s*rel="next"/.exec(typeof link === "string" ? link : "") ?? []
      const target = next === undefined ? null : URL.parse(next, this.#origin)
      if (target !== null && target.origin !== this.#origin) return Effect.fail(invalid("its next page is elsewhere"))
      return Effect.succeed({ document, next: target === null ? undefined : target.pathname + target.search })
    })
    return retrying(page)
  }
}

interface JsonPage {
  readonly document: unknown
  readonly next: string | undefined
}

const objectOf = (item: unknown, folder: string): StoredObject | undefined => {
  const path = JsonReply.text(item, "path")
  const prefix = folder === "" ? "" : `${folder}/`
  const oid = JsonReply.text(item, "oid") ?? ""
  if (path === undefined || !path.startsWith(prefix)) return undefined
  const key = path.slice(prefix.length)
  if (JsonReply.text(item, "type") === "directory") return { key: `${key}/`, size: 0, version: oid }
  const lfs = JsonReply.field(item, "lfs")
  const sha256 = JsonReply.text(lfs, "oid")
  const size = JsonReply.number(lfs, "size") ?? JsonReply.number(item, "size") ?? -1
  if (!Number.isSafeInteger(size) || size < 0) return undefined
  if (sha256 !== undefined) return { key, size, version: sha256, checksum: { algorithm: "sha256", value: sha256 } }
  const isGit = /^[0-9a-f]{40}$/.test(oid)
  return { key, size, version: oid, checksum: isGit ? { algorithm: "git", value: oid } : undefined }
}

const problemOf = ({ status, headers }: Omit<HttpReply, "body">, body: string): StoreProblem => {
  const code = headers["x-error-code"]
  return ReplyProblem.make({
    status,
    headers,
    code: typeof code === "string" ? code : undefined,
    message: JsonReply.text(JsonReply.parse(body), "error"),
  })
}

const invalid = (reason: string) =>
  new StoreProblem({ kind: "failed", code: "InvalidListing", message: `the listing cannot be read: ${reason}` })
