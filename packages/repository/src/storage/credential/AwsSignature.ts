/** Signature of a request to AWS, version 4, in its headers. AwsSignature.test.ts has the published examples. */
import { createHash, createHmac } from "node:crypto"
import { encode, type Query } from "../http/Encoding.ts"

export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

export interface SignedRequest {
  readonly method: string
  /** Encoded once, as it is sent. */
  readonly path: string
  readonly query: Query
  /** All that are signed, with the host, in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Digest of the body, or `UNSIGNED-PAYLOAD`. */
  readonly payload: string
}

export interface Scope {
  readonly region: string
  readonly service: string
  /** Milliseconds since 1970. */
  readonly time: number
}

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex")

/** Date and time as AWS writes them: `20130524T000000Z`. */
export const timestamp = (time: number): string => new Date(time).toISOString().replaceAll(/[:-]|\.\d{3}/g, "")

/** The value of the `authorization` header. */
export const authorization = (request: SignedRequest, keys: AwsKeys, { region, service, time }: Scope): string => {
  const names = Object.keys(request.headers).toSorted()
  const signedHeaders = names.join(";")
  const canonical = [
    request.method,
    request.path,
    canonicalQuery(request.query),
    ...names.map((name) => `${name}:${request.headers[name]?.trim().replaceAll(/ +/g, " ")}`),
    "",
    signedHeaders,
    request.payload,
  ].join("\n")
  const at = timestamp(time)
  const day = at.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const toSign = `AWS4-HMAC-SHA256\n${at}\n${scope}\n${sha256(canonical)}`
  const key = [day, region, service, "aws4_request"].reduce<Buffer | string>(hmac, `AWS4${keys.secretAccessKey}`)
  const signature = hmac(key, toSign).toString("hex")
  return `AWS4-HMAC-SHA256 Credential=${keys.accessKeyId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`
}

const hmac = (key: Buffer | string, text: string): Buffer => createHmac("sha256", key).update(text).digest()

/** Ordered by the code points of the encoded names, then values. */
const canonicalQuery = (query: Query): string =>
  query
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join("&")
