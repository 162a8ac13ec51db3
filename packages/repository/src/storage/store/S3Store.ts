/** A bucket of S3, or of a store with its interface: path-style addresses, signed requests. */
import { Clock, Effect, Result } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import * as AwsCredentials from "../credential/AwsCredentials.ts"
import * as AwsSignature from "../credential/AwsSignature.ts"
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

export interface S3Options {
  /** Scheme, host and port of another store than that of AWS. */
  readonly endpoint: string | undefined
  readonly bucket: string
  /** Path in the bucket, without slashes at its ends. */
  readonly path: string
  /** The variables to find credentials and an endpoint by. */
  readonly environment: Effect.Effect<Environment, StoreProblem>
}

interface S3Credentials extends AwsCredentials.AwsCredentials {
  readonly endpoint: string
}

type Prepared = Omit<HttpRequest, "origin" | "path" | "body"> & { readonly path: string; readonly query: Query }

export class S3Store implements ObjectStore {
  readonly #prefix: string
  readonly #bucketPath: string
  readonly #isForeign: (endpoint: string) => boolean = (endpoint) => !endpoint.includes(".amazonaws.com")
  readonly #credentials: RenewedCredentials<S3Credentials>
  /** Of the bucket, if it is another one than that of the credentials. */
  #region: string | undefined

  constructor({ endpoint, bucket, path, environment }: S3Options) {
    this.#prefix = path === "" ? "" : `${path}/`
    this.#bucketPath = `/${bucket}`
    this.#credentials = new RenewedCredentials(
      Effect.gen(function* () {
        const variables = yield* environment
        const { value, expiresAt } = yield* AwsCredentials.find(variables)
        const other = endpoint ?? variables["AWS_ENDPOINT_URL_S3"] ?? variables["AWS_ENDPOINT_URL"] ?? ""
        return { value: { ...value, endpoint: other.replace(/\/+$/, "") }, expiresAt }
      }),
    )
  }

  get list(): Effect.Effect<ReadonlyArray<StoredObject>, StoreProblem> {
    return Effect.gen({ self: this }, function* () {
      const objects: Array<StoredObject> = []
      let pages = 0
      for (let token: string | undefined = ""; token !== undefined;) {
        const page: { readonly objects: ReadonlyArray<StoredObject>; readonly next: string | undefined } =
          yield* this.#page(token)
        objects.push(...page.objects)
        yield* checkCount(objects.length, ++pages)
        token = page.next
      }
      return objects
    })
  }

  checksum(object: StoredObject): Effect.Effect<Checksum.Checksum | undefined, StoreProblem> {
    const headers = { "if-match": object.version, "x-amz-checksum-mode": "ENABLED" }
    return this.#signed({ method: "HEAD", path: this.#pathOf(object), query: [], headers }, (request, endpoint) =>
      send(request, async ({ status, headers }) => {
        if (status !== 200) throw problemOf({ status, headers }, "")
        return checksumOf(headers, this.#isForeign(endpoint))
      }),
    )
  }

  get<A>(
    object: StoredObject,
    range: ByteRange | undefined,
    read: (reply: ObjectReply) => Promise<A>,
  ): Effect.Effect<A, StoreProblem> {
    const headers = {
      "if-match": object.version,
      ...rangeHeaders(range),
      ...(range === undefined ? { "x-amz-checksum-mode": "ENABLED" } : {}),
    }
    return this.#signed({ method: "GET", path: this.#pathOf(object), query: [], headers }, (request, endpoint) =>
      send(request, async (reply) => {
        if (reply.status !== 200 && reply.status !== 206) throw problemOf(reply, await text(reply))
        const problem = checkReply(reply, object, range)
        if (problem !== undefined) throw problem
        const { etag } = reply.headers
        if (etag !== undefined && bare(etag) !== bare(object.version)) throw changed(`its ETag is ${etag} now`)
        return read({
          checksum: range === undefined ? checksumOf(reply.headers, this.#isForeign(endpoint)) : undefined,
          body: reply.body,
        })
      }),
    )
  }

  #page(token: string) {
    const query: Query = [
      ["list-type", "2"],
      ["encoding-type", "url"],
      ["prefix", this.#prefix],
      ...(token === "" ? [] : [["continuation-token", token] as const]),
    ]
    const page = this.#signed({ method: "GET", path: this.#bucketPath, query }, (request) =>
      Effect.flatMap(sendForText(request), (reply) =>
        Effect.fromResult(
          reply.status === 200 ? pageOf(reply.text, this.#prefix) : Result.fail(problemOf(reply, reply.text)),
        ),
      ),
    )
    return retrying(page)
  }

  #pathOf({ key }: StoredObject): string {
    return `${this.#bucketPath}/${encodePath(this.#prefix + key)}`
  }

  /** Signs a request and sends it; again if the bucket is in another region. */
  #signed<A>(
    prepared: Prepared,
    use: (request: HttpRequest, endpoint: string) => Effect.Effect<A, StoreProblem>,
  ): Effect.Effect<A, StoreProblem> {
    const attempt = authorized(this.#credentials, ({ keys, region: ownRegion, endpoint }) =>
      Effect.flatMap(Clock.currentTimeMillis, (time) => {
        const region = this.#region ?? ownRegion
        const base = endpoint === "" ? awsEndpoint(region) : endpoint
        return use(signedRequest(prepared, base, keys, region, time), base)
      }),
    )
    return Effect.catch(attempt, (problem) => {
      if (problem.region === undefined || problem.region === this.#region) return Effect.fail(problem)
      this.#region = problem.region
      return attempt
    })
  }
}

const awsEndpoint = (region: string) => `https://s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`

const signedRequest = (
  { method, path, query, headers: given = {} }: Prepared,
  endpoint: string,
  keys: AwsSignature.AwsKeys | undefined,
  region: string,
  time: number,
): HttpRequest => {
  const { origin, host, pathname } = new URL(endpoint)
  const payload = "UNSIGNED-PAYLOAD"
  const full = `${pathname === "/" ? "" : pathname}${path}`
  const headers = {
    ...given,
    host,
    ...(keys === undefined ? {} : { "x-amz-content-sha256": payload, "x-amz-date": AwsSignature.timestamp(time) }),
    ...(keys?.sessionToken === undefined ? {} : { "x-amz-security-token": keys.sessionToken }),
  }
  const target = query.length === 0 ? full : `${full}?${encodeQuery(query)}`
  if (keys === undefined) return { method, origin, path: target, headers }
  const signed = { method, path: full, query, headers, payload }
  const authorization = AwsSignature.authorization(signed, keys, { region, service: "s3", time })
  return { method, origin, path: target, headers: { ...headers, authorization } }
}

const pageOf = (document: string, prefix: string) =>
  Result.try({
    try: () => {
      const result = Xml.parse(document)
      if (result.name !== "ListBucketResult") throw new Error(`expected ListBucketResult, not ${result.name}`)
      const isEncoded = Xml.textOf(result, "EncodingType") === "url"
      const objects = Xml.childrenOf(result, "Contents").map((entry): StoredObject => {
        const written = Xml.textOf(entry, "Key") ?? ""
        const key = isEncoded ? decodeURIComponent(written.replaceAll("+", " ")) : written
        const size = Number(Xml.textOf(entry, "Size"))
        if (!key.startsWith(prefix) || !Number.isSafeInteger(size) || size < 0) throw new Error("an entry is not valid")
        return { key: key.slice(prefix.length), size, version: Xml.textOf(entry, "ETag") ?? "" }
      })
      const isTruncated = Xml.textOf(result, "IsTruncated") === "true"
      return { objects, next: isTruncated ? Xml.textOf(result, "NextContinuationToken") : undefined }
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
  const document = Result.getOrUndefined(Result.try({ try: () => Xml.parse(body), catch: () => "no XML" }))
  const bucketRegion = headers["x-amz-bucket-region"]
  const isElsewhere = status === 301 || status === 307 || status === 400
  const region = Xml.textOf(document, "Region") ?? (typeof bucketRegion === "string" ? bucketRegion : undefined)
  return ReplyProblem.make({
    status,
    headers,
    code: Xml.textOf(document, "Code"),
    message: Xml.textOf(document, "Message"),
    region: isElsewhere ? region : undefined,
  })
}

const bare = (etag: string): string => etag.replaceAll('"', "")

/** A checksum of the whole object. Those of uploads in parts are not, and an ETag is one only without encryption. */
const checksumOf = (headers: IncomingHttpHeaders, isForeign: boolean): Checksum.Checksum | undefined => {
  const header = (name: string) => {
    const value = headers[name]
    return typeof value === "string" && value !== "" ? value : undefined
  }
  if (header("x-amz-checksum-type") !== "COMPOSITE") {
    for (const algorithm of ["sha256", "crc32c", "crc32", "sha1"] as const) {
      const value = header(`x-amz-checksum-${algorithm}`)
      if (value !== undefined && !value.includes("-")) return Checksum.ofBase64(algorithm, value)
    }
  }
  const encryption = header("x-amz-server-side-encryption")
  const isEncrypted = encryption !== undefined && (isForeign || encryption !== "AES256")
  if (isEncrypted || header("x-amz-server-side-encryption-customer-algorithm") !== undefined) return undefined
  const etag = bare(header("etag") ?? "").toLowerCase()
  return /^[0-9a-f]{32}$/.test(etag) ? { algorithm: "md5", value: etag } : undefined
}
