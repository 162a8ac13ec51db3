/**
 * gRPC-Web in text: the body of a request, of a response, or both in base64, for browsers and proxies that pass on
 * texts only. Connect serves binary gRPC-Web; this module translates between the two.
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-WEB.md
 */
import type { OutgoingHttpHeaders } from "node:http"
import { InvalidRequest } from "@nereid/core/Errors"
import type { IncomingRequest } from "../port/HttpExchange.ts"
import { Base64Decoder } from "./Base64Decoder.ts"
import { fromError } from "./CallStatus.ts"
import { connectError } from "./connectError.ts"
import { isText, text } from "./TextEnvelopes.ts"

const binary = "application/grpc-web"

/** The methods of a response that write its head and its body. */
interface Response {
  writeHead: (status: number, headers: OutgoingHttpHeaders) => unknown
  write: (chunk: Uint8Array, encoding: "binary", sent: (error?: Error | null) => void) => boolean
}

/**
 * Gives a request in text the content type of a binary one, and encodes its response if the client takes text. The
 * caller reads the body of a request in text with `decoded`.
 */
export const translate = ({ headers }: IncomingRequest, response: Response): void => {
  const { "content-type": type = "", accept = "" } = headers
  if (!type.startsWith(binary)) return
  if (isText(type)) headers["content-type"] = type.replace(text, binary)
  const takesText = accept.includes(text) || (isText(type) && !accept.includes(binary))
  if (takesText) encodeBody(response)
}

const encodeBody = (response: Response): void => {
  const writeHead = response.writeHead.bind(response)
  const write = response.write.bind(response)
  response.writeHead = (status, headers = {}) => {
    const type = headers["content-type"]
    if (typeof type !== "string" || !type.startsWith(binary)) return writeHead(status, headers)
    response.write = (chunk, encoding, sent) => write(encoded(chunk), encoding, sent)
    return writeHead(status, { ...headers, "content-type": type.replace(binary, text) })
  }
}

/** Bytes that are encoded at a time: a whole number of groups, as one string may not hold a large message. */
const piece = 3 * 2 ** 18

/** A padded text of its own: clients decode each part as it comes. */
const encoded = (bytes: Uint8Array): Uint8Array => {
  const source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const target = Buffer.allocUnsafe(4 * Math.ceil(source.length / 3))
  for (let at = 0; at < source.length; at += piece) {
    target.write(source.toString("base64", at, at + piece), (at / 3) * 4, "latin1")
  }
  return target
}

/** The decoded chunks of a body. */
export async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decoder = new Base64Decoder()
  for await (const chunk of chunks) {
    const bytes = decoder.decode(chunk)
    if (bytes === undefined) throw invalid("is not base64")
    if (bytes.length > 0) yield bytes
  }
  if (!decoder.isComplete) throw invalid("ends within a group of base64")
}

const invalid = (reason: string) =>
  connectError(fromError(new InvalidRequest({ message: `the body of ${text} ${reason}` })))
