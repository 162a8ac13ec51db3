/** Compares a gRPC reply with what a case expects. Returns one line of text for each difference. */
import { fromBinary, toJson } from "@bufbuild/protobuf"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import type { GrpcCase } from "./Case.ts"
import { type GrpcReply, messages } from "./GrpcConnection.ts"
import { missing } from "./PartialMatch.ts"

const fits = (actual: unknown, expected: string | RegExp | undefined): boolean =>
  expected instanceof RegExp ? typeof actual === "string" && expected.test(actual) : actual === expected

export const compare = ({ expected, output = ModelInferResponseSchema }: GrpcCase, response: GrpcReply) => {
  const { code, message, tag, httpStatus, body, headers } = response
  const found: Array<string> = []
  if (httpStatus !== (expected.httpStatus ?? 200)) found.push(`HTTP status ${httpStatus}`)
  if (code !== expected.code) found.push(`code ${code}, expected ${expected.code}: ${message}`)
  if (expected.message !== undefined && !fits(message, expected.message)) {
    found.push(`message ${message}, expected ${String(expected.message)}`)
  }
  if (expected.tag !== undefined && tag !== expected.tag) found.push(`tag ${tag}, expected ${expected.tag}`)
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    if (!fits(headers[name], value)) found.push(`${name}: ${String(headers[name])}, expected ${String(value)}`)
  }
  if (expected.shows !== undefined) {
    const [reply = new Uint8Array()] = messages(body)
    const shown = toJson(output, fromBinary(output, reply), { useProtoFieldName: true, alwaysEmitImplicit: true })
    found.push(...missing(expected.shows, shown))
  }
  if (expected.replies === undefined) return found
  const replies = messages(body).map((reply) => JSON.stringify(toJson(output, fromBinary(output, reply))))
  if (replies.length !== expected.replies.length) found.push(`${replies.length} replies`)
  for (const [index, reply] of replies.entries()) {
    if (!fits(reply, expected.replies[index])) found.push(`${reply}, expected ${String(expected.replies[index])}`)
  }
  return found
}
