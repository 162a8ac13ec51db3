/** Signature of a request to Azure Blob Storage with the key of its account. */
import { createHmac } from "node:crypto"
import type { Query } from "../http/Encoding.ts"

export interface SharedKeyRequest {
  readonly method: string
  /** Encoded, as it is sent. */
  readonly path: string
  readonly query: Query
  /** In lower case. All that begin with `x-ms-` are signed. */
  readonly headers: Readonly<Record<string, string>>
}

/** Headers whose values are signed, in this order. */
const signedHeaders = [
  "content-encoding",
  "content-language",
  "content-length",
  "content-md5",
  "content-type",
  "date",
  "if-modified-since",
  "if-match",
  "if-none-match",
  "if-unmodified-since",
  "range",
]

/** The value of the `authorization` header. */
export const authorization = (
  { method, path, query, headers }: SharedKeyRequest,
  account: string,
  key: Uint8Array,
): string => {
  const own = Object.keys(headers)
    .filter((name) => name.startsWith("x-ms-"))
    .toSorted()
    .map((name) => `${name}:${headers[name]?.trim()}`)
  const resource = `/${account}${path}`
  const parameters = query.map(([name, value]) => `${name.toLowerCase()}:${value}`).toSorted((a, b) => (a < b ? -1 : 1))
  const lines = [method, ...signedHeaders.map((name) => headers[name] ?? ""), ...own, resource, ...parameters]
  return `SharedKey ${account}:${createHmac("sha256", key).update(lines.join("\n")).digest("base64")}`
}
