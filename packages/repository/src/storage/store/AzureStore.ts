/** A container of Azure Blob Storage. */
import { Clock, Effect, Result } from "effect"
import * as AzureCredentials from "../credential/AzureCredentials.ts"
import type { Environment } from "../credential/Environment.ts"
import { RenewedCredentials } from "../credential/RenewedCredentials.ts"
import { encodePath, encodeQuery, type Query } from "../http/Encoding.ts"
import { type HttpReply, type HttpRequest, send, sendForText, text } from "../http/HttpExchange.ts"
import * as ReplyProblem from "../http/ReplyProblem.ts"
import { retrying } from "../http/Retry.ts"
import { StoreProblem } from "../http/StoreProblem.ts"
import * as Xml from "../http/Xml.ts"
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
import * as SharedKey from "./SharedKey.ts"

export interface AzureOptions {
  readonly account: string
  readonly host: string
  readonly container: string
  /** Path in the container, without slashes at its ends. */
  readonly path: string
  /** Shared access signature of the URL; empty without one. */
  readonly signature: string
  /** The variables to find credentials and an endpoint by. */
  readonly environment: Effect.Effect<Environment, StoreProblem>
}

interface AzureAccess {
  readonly credentials: AzureCredentials.AzureCredentials
  readonly endpoint: string
  readonly signature: string
}

/** Of the protocol. */
const version = "2021-12-02"

export class AzureStore implements ObjectStore {
  readonly #prefix: string
  readonly #container: string
  readonly #access: RenewedCredentials<AzureAccess>

  constructor({ account, host, container, path, signature: ofUrl, environment }: AzureOptions) {
    this.#prefix = path === "" ? "" : `${path}/`
    this.#container = `/${container}`
    this.#access = new RenewedCredentials(
      Effect.gen(function* () {
        const variables = yield* environment
        const endpoint = (variables["AZURE_STORAGE_BLOB_ENDPOINT"] || `https://${host}`).replace(/\/+$/, "")
        const signature = ofUrl || (variables["AZURE_STORAGE_SAS_TOKEN"] ?? "").replace(/^\?/, "")
        if (signature !== "") {
          return { value: { credentials: { type: "anonymous" }, endpoint, signature } as const, expiresAt: undefined }
        }
        const { value: credentials, expiresAt } = yield* AzureCredentials.find(variables, account)
        return { value: { credentials, endpoint, signature }, expiresAt }
      }),
    )
  }

  get list(): Effect.Effect<ReadonlyArray<StoredObject>, StoreProblem> {
    return Effect.gen({ self: this }, function* () {
      const objects: Array<StoredObject> = []
      let pages = 0
      for (let marker: string | undefined = ""; marker !== undefined;) {
        const page: { readonly objects: ReadonlyArray<StoredObject>; readonly next: string | undefined } =
          yield* this.#page(marker)
        objects.push(...page.objects)
        yield* checkCount(objects.length, ++pages)
        marker = page.next
      }
      return objects
    })
  }

  /** The listing has it, unless the object was uploaded in blocks without one. */
  checksum({ checksum }: StoredObject): Effect.Effect<Checksum.Checksum | undefined> {
    return Effect.succeed(checksum)
  }

  get<A>(
    object: StoredObject,
    range: ByteRange | undefined,
    read: (reply: ObjectReply) => Promise<A>,
  ): Effect.Effect<A, StoreProblem> {
    const headers = { ...rangeHeaders(range), "if-match": `"${bare(object.version)}"` }
    const path = `${this.#container}/${encodePath(this.#prefix + object.key)}`
    return this.#signed(path, [], headers, (request) =>
      send(request, async (reply) => {
        if (reply.status !== 200 && reply.status !== 206) throw problemOf(reply, await text(reply))
        const problem = checkReply(reply, object, range)
        if (problem !== undefined) throw problem
        const { etag } = reply.headers
        if (etag !== undefined && bare(etag) !== bare(object.version)) throw changed(`its ETag is ${etag} now`)
        return read({ checksum: object.checksum, body: reply.body })
      }),
    )
  }

  #page(marker: string) {
    const query: Query = [
      ["restype", "container"],
      ["comp", "list"],
      ["prefix", this.#prefix],
      ...(marker === "" ? [] : [["marker", marker] as const]),
    ]
    const page = this.#signed(this.#container, query, {}, (request) =>
      Effect.flatMap(sendForText(request), (reply) =>
        Effect.fromResult(
          reply.status === 200 ? pageOf(reply.text, this.#prefix) : Result.fail(problemOf(reply, reply.text)),
        ),
      ),
    )
    return retrying(page)
  }

  #signed<A>(
    path: string,
    query: Query,
    given: Readonly<Record<string, string>>,
    use: (request: HttpRequest) => Effect.Effect<A, StoreProblem>,
  ): Effect.Effect<A, StoreProblem> {
    return authorized(this.#access, ({ credentials, endpoint, signature }) =>
      Effect.flatMap(Clock.currentTimeMillis, (time) => {
        const { origin, pathname } = new URL(endpoint)
        const full = `${pathname === "/" ? "" : pathname}${path}`
        const headers = { ...given, "x-ms-version": version, "x-ms-date": new Date(time).toUTCString() }
        const parameters = [encodeQuery(query), signature].filter((part) => part !== "").join("&")
        const target = parameters === "" ? full : `${full}?${parameters}`
        const authorization =
          credentials.type === "key"
            ? SharedKey.authorization(
                { method: "GET", path: full, query, headers },
                credentials.account,
                credentials.key,
              )
            : credentials.type === "token"
              ? `Bearer ${credentials.token}`
              : undefined
        return use({
          method: "GET",
          origin,
          path: target,
          headers: authorization === undefined ? headers : { ...headers, authorization },
        })
      }),
    )
  }
}

const pageOf = (document: string, prefix: string) =>
  Result.try({
    try: () => {
      const result = Xml.parse(document.replace(/^\uFEFF/, ""))
      if (result.name !== "EnumerationResults") throw new Error(`expected EnumerationResults, not ${result.name}`)
      const objects = Xml.childrenOf(Xml.childOf(result, "Blobs"), "Blob").map((entry): StoredObject => {
        const named = Xml.childOf(entry, "Name")
        const written = named?.text ?? ""
        const key = /Encoded\s*=\s*["']true/i.test(named?.attributes ?? "") ? decodeURIComponent(written) : written
        const properties = Xml.childOf(entry, "Properties")
        const size = Number(Xml.textOf(properties, "Content-Length"))
        if (!key.startsWith(prefix) || !Number.isSafeInteger(size) || size < 0) throw new Error("an entry is not valid")
        // Accounts with hierarchical names list their directories.
        const isDirectory = Xml.textOf(properties, "ResourceType") === "directory"
        return {
          key: `${key.slice(prefix.length)}${isDirectory && !key.endsWith("/") ? "/" : ""}`,
          size,
          version: Xml.textOf(properties, "Etag") ?? "",
          checksum: Checksum.ofBase64("md5", Xml.textOf(properties, "Content-MD5")),
        }
      })
      return { objects, next: Xml.textOf(result, "NextMarker") }
    },
    catch: (error) => {
      const reason = error instanceof Error ? error.message : String(error)
      return new StoreProblem({
        kind: "failed",
        code: "InvalidListing",
        message: `the listing cannot be read: ${reason}`,
      })
    },
  })

const problemOf = ({ status, headers }: Omit<HttpReply, "body">, body: string): StoreProblem => {
  const parsed = Result.try({ try: () => Xml.parse(body.replace(/^\uFEFF/, "")), catch: () => "no XML" })
  const document = Result.getOrUndefined(parsed)
  const header = headers["x-ms-error-code"]
  return ReplyProblem.make({
    status,
    headers,
    code: Xml.textOf(document, "Code") ?? (typeof header === "string" ? header : undefined),
    // The details of a refused signature have what was signed.
    message: Xml.textOf(document, "Message")?.split("\n")[0],
  })
}

const bare = (etag: string): string => etag.replaceAll('"', "")
