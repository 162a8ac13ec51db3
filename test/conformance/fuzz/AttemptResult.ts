/** The result of a fuzzing attempt, compared with the expected one: its outputs, or an error of the protocol. */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { grpcOutputs, httpOutputs, streamReply } from "../ResponseComparison.ts"
import { codes } from "../Codes.ts"
import { bytesOf } from "../Elements.ts"
import type { GrpcReply } from "../GrpcConnection.ts"
import type { HttpReply } from "../HttpConnection.ts"
import type { Tensor } from "../InferRequest.ts"
import type { Attempt } from "./Attempt.ts"
import { anyBytes } from "./Verdict.ts"

/** The problem, if any, and how the server's counters must count the attempt. */
export interface AttemptResult {
  readonly problem: string | undefined
  /** Counted by a model: a request that it answered, or that was refused in its name. */
  readonly counted: "success" | "fail" | "not"
}

const judge = (
  one: Attempt,
  status: { readonly ok: boolean; readonly refusal: string },
  read: () => ReadonlyArray<Tensor>,
): AttemptResult => {
  const { outputs, breaks } = one
  if (breaks && outputs !== undefined) return { problem: "the oracle takes what cannot be valid", counted: "not" }
  if (!status.ok) {
    const problem = outputs === undefined ? undefined : `refused what is valid: ${status.refusal}`
    return { problem, counted: counted(status.refusal) }
  }
  if (outputs === undefined)
    return { problem: `answered what is not valid: ${read().map(printed).join()}`, counted: "success" }
  const [actual, expected] = [read(), outputs]
  const same =
    actual.length === expected.length &&
    expected.every((output, index) => {
      const other = actual[index]
      if (other === undefined) return false
      return (
        printed(output.bytes === anyBytes ? { ...other, ...output, bytes: bytesOf(other) } : output) === printed(other)
      )
    })
  const problem = same
    ? undefined
    : `answered ${actual.map(printed).join("; ")}, expected ${expected.map(printed).join("; ")}`
  return { problem, counted: "success" }
}

/** Errors with a request's id are a model's, as are incomplete strings. Errors of encoders follow its success. */
const counted = (refusal: string): AttemptResult["counted"] => {
  if (/^(sending (FP|BF)16 data|class result|classification output|element [0-9]+ of output)/.test(refusal))
    return "success"
  if (refusal.startsWith("incomplete string data")) return "fail"
  return refusal.startsWith("[request id: ") && !/\] (Raw request|The shape of the raw|For BYTE datatype)/.test(refusal)
    ? "fail"
    : "not"
}

/** A tensor in one line, all NaN alike. */
export const printed = (of: Tensor): string => {
  const bytes = Buffer.from(bytesOf(of))
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (of.datatype === "FP32") {
    for (let at = 0; at < bytes.length; at += 4)
      if (Number.isNaN(view.getFloat32(at, true))) view.setFloat32(at, Number.NaN, true)
  }
  if (of.datatype === "FP64") {
    for (let at = 0; at < bytes.length; at += 8)
      if (Number.isNaN(view.getFloat64(at, true))) view.setFloat64(at, Number.NaN, true)
  }
  return `${of.name} ${of.datatype}[${of.shape}] ${bytes.toString("hex")}`
}

/** Those of errors, that of a wrong extent, and that of an unknown encoding. */
const statuses: ReadonlySet<number> = new Set([...Object.values(codes).map(({ http }) => http), 500, 415])

/** The only mistake of a caller with status 500. */
const wrongExtent = /^Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer/

export const overHttp = (one: Attempt, response: HttpReply): AttemptResult => {
  const { status, headers, body } = response
  if (status === 200) return judge(one, { ok: true, refusal: "" }, () => httpOutputs(response).outputs)
  const text = body.toString()
  const error: unknown = JSON.parse(text)
  const refusal = typeof error === "object" && error !== null && "error" in error ? String(error.error) : ""
  const problem = (label: string): AttemptResult => ({
    problem: `${label}: ${status} ${text.slice(0, 300)}`,
    counted: "not",
  })
  if (!statuses.has(status)) return problem("a status outside the protocol")
  if (refusal === "" || headers.get("content-type") !== "application/json") return problem("no error as JSON")
  if (status === 500 && !wrongExtent.test(refusal)) return problem("a failure of the server")
  return judge(one, { ok: false, refusal }, () => [])
}

const grpcCodes: ReadonlySet<number> = new Set([
  ...Object.values(codes).map(({ grpc }) => grpc),
  GrpcCode.RESOURCE_EXHAUSTED,
])

export const overGrpc = (one: Attempt, response: GrpcReply): AttemptResult => {
  const { httpStatus, code, message, tag } = response
  if (code === 0) return judge(one, { ok: true, refusal: "" }, () => grpcOutputs(response).outputs)
  const problem = (label: string): AttemptResult => ({
    problem: `${label}: ${code} ${message.slice(0, 300)}`,
    counted: "not",
  })
  if (httpStatus !== 200 || code === undefined || !grpcCodes.has(code) || message === "")
    return problem("no status of gRPC")
  // Untagged, it is Connect's own word for bytes that are no message.
  const isMalformed = tag === "MalformedRequest" || /^(parse binary|protocol error)/.test(message)
  if (code === GrpcCode.INTERNAL && !isMalformed) return problem("a failure of the server")
  return judge(one, { ok: false, refusal: message }, () => [])
}

/** A stream that ended well has its refusal in band. */
export const overStream = (one: Attempt, reply: GrpcReply): AttemptResult => {
  if (reply.code !== 0) return overGrpc(one, reply)
  const { errorMessage, response } = streamReply(reply)
  if (errorMessage === "") return judge(one, { ok: true, refusal: "" }, () => response.outputs)
  if (errorMessage.startsWith("Internal error")) return { problem: errorMessage, counted: "not" }
  return judge(one, { ok: false, refusal: errorMessage }, () => [])
}
