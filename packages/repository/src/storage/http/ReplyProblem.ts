/** The problem that a status of HTTP stands for. */
import type { IncomingHttpHeaders } from "node:http"
import { StoreProblem } from "./StoreProblem.ts"

export interface ReplyError {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** From the body of the reply, if it has them. */
  readonly code?: string | undefined
  readonly message?: string | undefined
  readonly region?: string | undefined
}

/** Codes of credentials that were right once; stores send them with 400 as well. */
const expired = new Set(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken"])

export const make = ({ status, headers, code, message, region }: ReplyError): StoreProblem => {
  const retryAfter = retryAfterOf(headers)
  return new StoreProblem({
    kind: kindOf(status, code),
    code: code ?? `HTTP ${status}`,
    message: message ?? `the store answered with status ${status}`,
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(region === undefined ? {} : { region }),
  })
}

const kindOf = (status: number, code: string | undefined): StoreProblem["kind"] => {
  if (status === 408 || status === 429 || status >= 500) return "unreachable"
  if (status === 401 || status === 403 || (code !== undefined && expired.has(code))) return "denied"
  if (status === 404 || status === 410) return "missing"
  return status === 412 || status === 416 ? "changed" : "failed"
}

const retryAfterOf = ({ "retry-after": text }: IncomingHttpHeaders): number | undefined => {
  const seconds = Number(text ?? "")
  return text !== undefined && seconds > 0 ? seconds * 1000 : undefined
}
