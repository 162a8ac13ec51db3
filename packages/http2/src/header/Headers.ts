/**
 * Header fields by name, as node:http2 gives them: names in lower case, values in Latin-1. The values of a name that
 * comes more than once are joined, except those of fields that have one value, of which the first counts.
 */
import type { FieldList } from "../hpack/HeaderDecoder.ts"

export interface Headers {
  readonly [name: string]: string | Array<string> | undefined
}

/** Fields that have one value. */
const singleValue: ReadonlySet<string> = new Set(
  (
    ":status :method :authority :scheme :path :protocol access-control-allow-credentials access-control-max-age " +
    "access-control-request-method age authorization content-encoding content-language content-length " +
    "content-location content-md5 content-range content-type date dnt etag expires from host if-match " +
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards " +
    "proxy-authorization range referer retry-after tk upgrade-insecure-requests user-agent x-content-type-options"
  ).split(" "),
)

export const of = (fields: FieldList): Headers => {
  const headers: { [name: string]: string | Array<string> } = Object.create(null)
  for (let index = 0; index < fields.length; index += 2) {
    const name = fields[index] ?? ""
    const value = fields[index + 1] ?? ""
    const existing = headers[name]
    if (existing === undefined) headers[name] = name === "set-cookie" ? [value] : value
    else if (Array.isArray(existing)) existing.push(value)
    else if (!singleValue.has(name)) headers[name] = `${existing}${name === "cookie" ? "; " : ", "}${value}`
  }
  return headers
}
