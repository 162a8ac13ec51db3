/**
 * Checks what Node's parser leaves open in the head of an HTTP/1.1 request: the target, the host and the transfer
 * coding (RFC 9112, sections 3.2, 3.3 and 6.1). Two readings of one head would let a request pass a proxy unseen.
 */
import type { IncomingMessage } from "node:http"

/**
 * Returns why a request is refused; undefined if it is not. An absolute-form target becomes a path, and its authority
 * replaces the host, so that handlers see one form.
 */
export const refusal = (request: IncomingMessage): string | undefined =>
  hostRefusal(request) ?? codingRefusal(request) ?? targetRefusal(request)

const hostRefusal = ({ rawHeaders, httpVersionMinor }: IncomingMessage): string | undefined => {
  let hosts = 0
  for (let index = 0; index < rawHeaders.length; index += 2) if (isHost(rawHeaders[index])) hosts += 1
  if (hosts > 1) return `the request has ${hosts} Host headers, expected one`
  return hosts === 0 && httpVersionMinor > 0 ? "the request has no Host header, which HTTP/1.1 requires" : undefined
}

const isHost = (name = ""): boolean => name.length === 4 && name.toLowerCase() === "host"

const codingRefusal = ({ headers, httpVersionMinor }: IncomingMessage): string | undefined => {
  const coding = headers["transfer-encoding"]
  if (coding === undefined) return undefined
  if (httpVersionMinor === 0) return "the request is HTTP/1.0, which has no Transfer-Encoding"
  if (coding.toLowerCase() === "chunked") return undefined
  return `the Transfer-Encoding '${coding.slice(0, maxShown)}' is not supported, expected 'chunked'`
}

/** Characters of a header that a message shows. */
const maxShown = 40

const targetRefusal = (request: IncomingMessage): string | undefined => {
  const { url = "" } = request
  if (url.startsWith("/")) return undefined
  const [, authority, rest = ""] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? []
  if (authority === undefined || !isAuthority.test(authority)) {
    return `the request target '${url.slice(0, maxShown)}' is not a path and not an address of this server`
  }
  request.url = rest.startsWith("/") ? rest : `/${rest}`
  request.headers.host = authority
  const at = request.rawHeaders.findIndex((name, index) => index % 2 === 0 && isHost(name))
  if (at < 0) request.rawHeaders.push("Host", authority)
  else request.rawHeaders[at + 1] = authority
  return undefined
}

/** A host and an optional port, without user information. */
const isAuthority = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d*)?$/i
