/**
 * A container of Azure Blob Storage on a free port. It accepts the key of its account, a shared access signature or a
 * token, checked as the manual of the service describes them.
 */
import { Effect } from "effect"
import { createHash, createHmac } from "node:crypto"
import * as LocalServer from "../http/LocalServer.fixture.ts"

export const account = "account"
export const key = Buffer.from("the key of the account").toString("base64")
export const token = "a-token"

export class FakeAzure {
  readonly blobs = new Map<string, string>()
  readonly requests: ReadonlyArray<LocalServer.ReceivedRequest>
  readonly endpoint: string

  constructor({ origin, requests }: LocalServer.LocalServer) {
    this.endpoint = origin
    this.requests = requests
  }
}

export const make = Effect.gen(function* () {
  const server = yield* LocalServer.make((request) => answer(fake, request))
  const fake: FakeAzure = new FakeAzure(server)
  return fake
})

const answer = ({ blobs }: FakeAzure, request: LocalServer.ReceivedRequest): LocalServer.LocalReply => {
  const { method, path, query, headers } = request
  if (method !== "GET" || headers["x-ms-version"] === undefined) return refused(400, "InvalidHeaderValue")
  if (!isAuthorized(request)) return refused(403, "AuthenticationFailed")
  if (path === "/models") {
    if (query.get("restype") !== "container" || query.get("comp") !== "list") return refused(400, "InvalidQuery")
    return { body: listing([...blobs], query.get("prefix") ?? "", Number(query.get("marker") ?? 0)) }
  }
  const content = blobs.get(path.replace("/models/", ""))
  if (content === undefined) return refused(404, "BlobNotFound")
  const etag = `"${etagOf(content)}"`
  if (headers["if-match"] !== etag) return refused(412, "ConditionNotMet")
  return LocalServer.contents(request, Buffer.from(content), { etag })
}

const etagOf = (content: string) => `0x${createHash("md5").update(content).digest("hex").slice(0, 15).toUpperCase()}`

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** Pages of one blob. A mark of the byte order is first, as the service has it. */
const listing = (blobs: ReadonlyArray<readonly [string, string]>, prefix: string, start: number): string => {
  const found = blobs.filter(([name]) => name.startsWith(prefix))
  const entries = found.slice(start, start + 1).map(([name, content]) => {
    const md5 = createHash("md5").update(content).digest("base64")
    const properties = `<Etag>${etagOf(content)}</Etag><Content-Length>${content.length}</Content-Length><Content-MD5>${md5}</Content-MD5>`
    return `<Blob><Name>${escaped(name)}</Name><Properties>${properties}<BlobType>BlockBlob</BlobType></Properties></Blob>`
  })
  const next = start + 1 < found.length ? `<NextMarker>${start + 1}</NextMarker>` : "<NextMarker />"
  return `\uFEFF<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="models"><Prefix>${prefix}</Prefix><Blobs>${entries.join("")}</Blobs>${next}</EnumerationResults>`
}

const refused = (status: number, code: string): LocalServer.LocalReply => ({
  status,
  headers: { "x-ms-error-code": code },
  body: `\uFEFF<?xml version="1.0" encoding="utf-8"?><Error><Code>${code}</Code><Message>it is so\nRequestId:1\nwhat was signed</Message></Error>`,
})

const isAuthorized = (request: LocalServer.ReceivedRequest): boolean => {
  const { authorization } = request.headers
  if (authorization === undefined) return request.query.get("sig") === "a+signature/="
  return authorization === `Bearer ${token}` || authorization === `SharedKey ${account}:${signatureOf(request)}`
}

/** The string to sign of Blob service, version 2015-02-21 and newer, with the headers that came. */
const signatureOf = ({ method, target, query, headers }: LocalServer.ReceivedRequest): string => {
  const standard = ["content-encoding", "content-language", "content-length", "content-md5", "content-type", "date"]
  const conditions = ["if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"]
  const lines = [method, ...[...standard, ...conditions].map((name) => String(headers[name] ?? ""))]
  const names = Object.keys(headers).filter((name) => name.startsWith("x-ms-"))
  for (const name of names.toSorted()) lines.push(`${name}:${String(headers[name])}`)
  lines.push(`/${account}${target.split("?")[0]}`)
  for (const name of [...query.keys()].toSorted()) lines.push(`${name}:${query.get(name)}`)
  return createHmac("sha256", Buffer.from(key, "base64")).update(lines.join("\n"), "utf8").digest("base64")
}
