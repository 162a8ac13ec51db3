/** Entity tags of responses with several encodings, and requests that are conditional on them (RFC 9110, 13.1.2). */
import type { Encoding } from "./HttpCompression.ts"

/** The tag of one encoding of a response: different bytes need different tags (RFC 9110, 8.8.3.3). */
export const ofEncoding = (etag: string, encoding: Encoding): string =>
  encoding === "identity" ? etag : etag.replace(/"$/, `-${encoding}"`)

/** Whether the value of If-None-Match names a tag: `*`, or a list of tags, weak ones among them. */
export const matches = (list: string | undefined, etag: string): boolean =>
  list !== undefined && (list.trim() === "*" || [...list.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag))
