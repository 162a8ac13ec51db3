/**
 * A decoded header block: the fields, and whether they are a valid request, response or trailers (RFC 9113, 8.2 and
 * 8.3). A block that a connection repeats is checked once.
 */
import type { FieldList, Similar } from "../hpack/HeaderDecoder.ts"
import * as Headers from "./Headers.ts"

/** The message, or the part of one, that a block belongs to. */
export type Kind = "request" | "response" | "trailers"

/** The pseudo-headers of each kind, as bits. */
const pseudoHeaders: Readonly<Record<Kind, ReadonlyMap<string, number>>> = {
  request: new Map([
    [":method", 1],
    [":scheme", 2],
    [":path", 4],
    [":authority", 8],
  ]),
  response: new Map([[":status", 1]]),
  trailers: new Map(),
}

const required: Readonly<Record<Kind, number>> = { request: 7, response: 1, trailers: 0 }

/** Fields of HTTP/1.1 that concern a connection (RFC 9113, 8.2.2). */
const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
])

/** Most fields of a block; nghttp2's clients send at most as many. */
const maxFields = 128

/** A token (RFC 9110, 5.6.2) without upper case. */
const validName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/

/**
 * Spaces at the ends are allowed, unlike in RFC 9113, 8.2.1, because gRPC allows such metadata, and nothing here passes
 * fields on to HTTP/1.1.
 */
const invalidValue = /[^\t\x20-\x7e\x80-\uffff]/

/** Characters of an authority (RFC 3986, 3.2), and those that nghttp2 accepts besides. */
const validAuthority = /^[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=%]+$/

/** A path, with whatever is not a space or a control character, as nghttp2 accepts it; or that of OPTIONS. */
const validPath = /^(?:\/[\x21-\x7e\x80-\uffff]*|\*)$/

/** Fields whose value decides on the block, beside the pseudo-headers. */
const checkedValues: ReadonlySet<string> = new Set(["te", "content-length", "host"])

const digits = /^\d{1,15}$/

export class HeaderBlock {
  readonly fields: FieldList
  readonly isTooLarge: boolean
  /** Length that the fields declare for the body; undefined if they do not. Set by `problem`. */
  contentLength: number | undefined
  /** The HTTP status of a response, from 100 to 999. Set by `problem`. */
  status = 0
  readonly #problems: { [K in Kind]?: string } = {}
  #headers: Headers.Headers | undefined

  constructor(fields: FieldList, isTooLarge: boolean, similar?: Similar<HeaderBlock>) {
    this.fields = fields
    this.isTooLarge = isTooLarge || fields.length > 2 * maxFields
    if (similar !== undefined) this.#follow(similar)
  }

  /** Fields by name. Shared by all streams whose block is the same, so it must not be changed. */
  get headers(): Headers.Headers {
    return (this.#headers ??= Headers.of(this.fields))
  }

  /** Returns why the block is not valid as such; an empty text if it is. */
  problem(kind: Kind): string {
    return (this.#problems[kind] ??= this.#check(kind))
  }

  /** A valid request stays one if only the value of a field without meaning here has changed. */
  #follow({ result, index }: Similar<HeaderBlock>): void {
    if (result.#problems.request !== "" || result.isTooLarge) return
    const name = this.fields[index - 1] ?? ""
    if (name.startsWith(":") || checkedValues.has(name) || invalidValue.test(this.fields[index] ?? "")) return
    this.contentLength = result.contentLength
    this.#problems.request = ""
  }

  #check(kind: Kind): string {
    const { fields } = this
    let seen = 0
    let isRegular = false
    for (let index = 0; index < fields.length; index += 2) {
      const name = fields[index] ?? ""
      const value = fields[index + 1] ?? ""
      if (invalidValue.test(value)) return `the value of ${name} has a character that is not allowed`
      if (name.startsWith(":")) {
        const bit = pseudoHeaders[kind].get(name)
        if (bit === undefined) return `unknown pseudo-header ${name}`
        if (isRegular) return `the pseudo-header ${name} follows a header field`
        if ((seen & bit) !== 0) return `the pseudo-header ${name} comes twice`
        seen |= bit
        continue
      }
      isRegular = true
      if (!validName.test(name)) return "the name of a header field is not a token in lower case"
      if (connectionFields.has(name)) return `the header field ${name} is not allowed in HTTP/2`
      if (name === "te" && value.toLowerCase() !== "trailers") return `te is '${value}', expected trailers`
      if (name === "content-length" && kind !== "trailers") {
        if (!digits.test(value)) return `content-length is '${value}', expected a number`
        const length = Number(value)
        if (this.contentLength !== undefined && this.contentLength !== length) return "there are two content-lengths"
        this.contentLength = length
      }
    }
    return this.#checkPseudo(kind, seen)
  }

  #checkPseudo(kind: Kind, seen: number): string {
    const { headers } = this
    if (kind === "response") {
      const status = String(headers[":status"])
      this.status = Number(status)
      if (!/^[1-9]\d\d$/.test(status)) return `:status is '${status}', expected three digits`
    }
    if (kind === "request" && headers[":method"] === "CONNECT") {
      // It has no scheme and no path (RFC 9113, 8.5).
      return seen === 9 ? "" : "CONNECT has :authority as its only other pseudo-header"
    }
    if ((seen & required[kind]) !== required[kind]) return "a pseudo-header is missing"
    if (kind !== "request") return ""
    // One of the two is required, and neither may be empty (RFC 9113, 8.3.1).
    const { ":authority": authority, host } = headers
    for (const name of [authority ?? host, host ?? authority]) {
      if (typeof name !== "string" || !validAuthority.test(name)) return "there is no valid :authority or host"
    }
    const path = headers[":path"]
    const method = headers[":method"]
    if (typeof method !== "string" || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(method)) return ":method is not a token"
    if (typeof path !== "string") return ":path is missing"
    if (!validPath.test(path)) return `:path is '${path}', expected a path`
    return path !== "*" || method === "OPTIONS" ? "" : ":path is '*', which is for OPTIONS"
  }
}
