/** Encodes HTTP/1.1 requests as bytes, and reads the message of an error reply. */
import { timeoutHeader } from "@nereid/core/internal/codec/json/BinaryExtension"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { type Address, print } from "../target/Address.ts"
import type { Overload } from "../target/Load.ts"
import { header, type HttpReply } from "./ReplyReader.ts"

export interface HttpRequest {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Digits of a timeout in `encode`. */
const timeoutDigits = 6

/** Bytes of a request, and where they tell the server the time that is left; undefined where they do not. */
export interface TimedRequest {
  readonly bytes: Buffer
  readonly timeoutAt: number | undefined
}

/** Encodes a request with a header for the time that is left. `tell` writes the time. */
export const encodeTimed = (address: Address, request: HttpRequest): TimedRequest => {
  const placeholder = "0".repeat(timeoutDigits)
  const bytes = encode(address, { ...request, headers: { ...request.headers, [timeoutHeader]: placeholder } })
  const name = `\r\n${timeoutHeader}: `
  return { bytes, timeoutAt: bytes.indexOf(`${name}${placeholder}\r\n`) + name.length }
}

/** Returns a copy of the request that tells the server this time, in milliseconds. */
export const tell = ({ bytes, timeoutAt }: TimedRequest, milliseconds: number): Buffer => {
  const copy = Buffer.from(bytes)
  const text = String(milliseconds).padStart(timeoutDigits, "0")
  if (timeoutAt !== undefined) copy.write(text.slice(-timeoutDigits), timeoutAt, "latin1")
  return copy
}

/** Whether the reply reports an overloaded server. */
export const overload = ({ status, head }: HttpReply): Overload | undefined => {
  if (status === 504 || (status === 503 && header(head, tagHeader) === "DeadlineExceeded")) return "late"
  return status === 503 || status === 429 ? "refused" : undefined
}

export const encode = (address: Address, { method, path, headers, body }: HttpRequest): Buffer => {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `host: ${print(address)}`,
    ...(method === "GET" ? [] : [`content-length: ${body.length}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ]
  return Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), body])
}

/** Returns an error message for a failed reply, otherwise undefined. */
export const problem = ({ status, body }: HttpReply): string | undefined => {
  if (status === 200) return undefined
  const text = errorText(body)
  return `HTTP status ${status}${text === "" ? "" : `: ${text}`}`
}

/** The text of `{"error": text}`, which is how the protocol's servers say it; of anything else, how it begins. */
const errorText = (body: Buffer): string => {
  try {
    const parsed: unknown = JSON.parse(body.toString())
    if (typeof parsed === "object" && parsed !== null && "error" in parsed) return String(parsed.error)
  } catch {
    // The body is not JSON.
  }
  return body.toString("utf8", 0, 200).trim()
}
