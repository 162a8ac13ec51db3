/** Encodes HTTP/1.1 requests as bytes, and reads the message of an error reply. */
import { type Address, print } from "../target/Address.ts"
import type { HttpReply } from "./ReplyReader.ts"

export interface HttpRequest {
  readonly method: "GET" | "POST"
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
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
