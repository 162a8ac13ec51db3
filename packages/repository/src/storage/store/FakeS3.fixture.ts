/** A store with the interface of S3 on a free port, with the faults that a test wants. It checks no signature. */
import { Effect, type Scope } from "effect"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

/** Returns whether it has answered. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean

export class FakeS3 {
  readonly url: string
  /** By their keys. */
  readonly objects = new Map<string, Uint8Array>()
  /** Method and path of each request, with its range. */
  readonly requests: Array<string> = []
  /** Asked before each request. */
  fault: Fault = () => false
  pageSize = 1000

  constructor(port: number) {
    this.url = `s3://http://127.0.0.1:${port}/bucket/models`
  }

  put(key: string, content: Uint8Array | string): void {
    this.objects.set(`models/${key}`, Buffer.from(content))
  }

  /** Requests for contents. */
  get gets(): ReadonlyArray<string> {
    return this.requests.filter((request) => !request.includes("list-type"))
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "", "http://localhost")
    const { range } = request.headers
    this.requests.push(`${request.method} ${url.pathname}${url.search}${range === undefined ? "" : ` ${range}`}`)
    if (this.fault(request, response)) return
    if (url.searchParams.has("list-type")) return this.#list(url, response)
    const content = this.objects.get(decodeURIComponent(url.pathname).replace("/bucket/", ""))
    if (content === undefined) return refuse(response, 404, "NoSuchKey")
    const tag = etag(content)
    if (request.headers["if-match"] !== tag) return refuse(response, 412, "PreconditionFailed")
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range ?? "") ?? []
    const part = start === undefined ? content : content.subarray(Number(start), Number(end) + 1)
    response.writeHead(start === undefined ? 200 : 206, {
      etag: tag,
      "content-length": part.length,
      ...(start === undefined ? {} : { "content-range": `bytes ${start}-${end}/${content.length}` }),
    })
    response.end(request.method === "HEAD" ? undefined : part)
  }

  #list({ searchParams }: URL, response: ServerResponse): void {
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(searchParams.get("prefix") ?? ""))
    const start = Number(searchParams.get("continuation-token") ?? 0)
    const page = keys.slice(start, start + this.pageSize)
    const entries = page.map((key) => {
      const content = this.objects.get(key) ?? Buffer.alloc(0)
      const tag = etag(content).replaceAll('"', "&quot;")
      return `<Contents><Key>${encodeURIComponent(key)}</Key><ETag>${tag}</ETag><Size>${content.length}</Size></Contents>`
    })
    const next = start + this.pageSize
    const more = next < keys.length ? `<NextContinuationToken>${next}</NextContinuationToken>` : ""
    response.end(
      `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${more !== ""}</IsTruncated>${more}${entries.join("")}</ListBucketResult>`,
    )
  }
}

const etag = (content: Uint8Array) => `"${createHash("md5").update(content).digest("hex")}"`

export const refuse = (response: ServerResponse, status: number, code: string): void => {
  response.writeHead(status).end(`<Error><Code>${code}</Code><Message>it is so</Message></Error>`)
}

export const make: Effect.Effect<FakeS3, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    const server = createServer((request, response) => store.answer(request, response))
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const store = new FakeS3((server.address() as AddressInfo).port)
    return { server, store }
  }),
  ({ server }) =>
    Effect.sync(() => {
      server.close()
      server.closeAllConnections()
    }),
).pipe(Effect.map(({ store }) => store))
