/** How an attempt of the fuzzing ended, held against what it deserves: its outputs, or an error that is one of the protocol's. */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import { grpcOutputs, httpOutputs, streamReply } from "../Answer.ts"
import { codes } from "../Codes.ts"
import { bytesOf } from "../Elements.ts"
import type { GrpcAnswer } from "../GrpcConnection.ts"
import type { HttpAnswer } from "../HttpConnection.ts"
import type { Tensor } from "../InferRequest.ts"
import type { Attempt } from "./Attempt.ts"
import { anyBytes } from "./Verdict.ts"

/** What there is to say of it, and what the server's counters must know. */
export interface Ended {
  readonly problem: string | undefined
  /** Counted by a model: a request that it answered, or that was refused in its name. */
  readonly counted: "success" | "fail" | "not"
}

const judge = (
  one: Attempt,
  status: { readonly ok: boolean; readonly refusal: string },
  read: () => ReadonlyArray<Tensor>,
): Ended => {
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

/** Errors in a request's name are a model's; those of how an answer is written come after its success. */
const counted = (refusal: string): Ended["counted"] => {
  if (/^(sending (FP|BF)16 data|class result|classification output|element [0-9]+ of output)/.test(refusal))
    return "success"
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

const statuses: ReadonlySet<number> = new Set(Object.values(codes).map(({ http }) => http))

export const overHttp = (one: Attempt, answer: HttpAnswer): Ended => {
  const { status, headers, body } = answer
  if (status === 200) return judge(one, { ok: true, refusal: "" }, () => httpOutputs(answer).outputs)
  const text = body.toString()
  const error: unknown = JSON.parse(text)
  const refusal = typeof error === "object" && error !== null && "error" in error ? String(error.error) : ""
  const problem = (what: string): Ended => ({ problem: `${what}: ${status} ${text.slice(0, 300)}`, counted: "not" })
  if (!statuses.has(status)) return problem("a status that is none of the protocol's")
  if (refusal === "" || headers.get("content-type") !== "application/json") return problem("no error as JSON")
  if (status === 500 && headers.get(tagHeader) !== "MalformedRequest") return problem("a failure of the server")
  return judge(one, { ok: false, refusal }, () => [])
}

const grpcCodes: ReadonlySet<number> = new Set([
  ...Object.values(codes).map(({ grpc }) => grpc),
  GrpcCode.RESOURCE_EXHAUSTED,
])

export const overGrpc = (one: Attempt, answer: GrpcAnswer): Ended => {
  const { httpStatus, code, message, tag } = answer
  if (code === 0) return judge(one, { ok: true, refusal: "" }, () => grpcOutputs(answer).outputs)
  const problem = (what: string): Ended => ({ problem: `${what}: ${code} ${message.slice(0, 300)}`, counted: "not" })
  if (httpStatus !== 200 || code === undefined || !grpcCodes.has(code) || message === "")
    return problem("no status of gRPC")
  // Untagged, it is Connect's own word for bytes that are no message.
  const isMalformed = tag === "MalformedRequest" || /^(parse binary|protocol error)/.test(message)
  if (code === GrpcCode.INTERNAL && !isMalformed) return problem("a failure of the server")
  return judge(one, { ok: false, refusal: message }, () => [])
}

/** A stream that ended well has its refusal in band. */
export const overStream = (one: Attempt, answer: GrpcAnswer): Ended => {
  if (answer.code !== 0) return overGrpc(one, answer)
  const { errorMessage, response } = streamReply(answer)
  if (errorMessage === "") return judge(one, { ok: true, refusal: "" }, () => response.outputs)
  if (errorMessage.startsWith("Internal error")) return { problem: errorMessage, counted: "not" }
  return judge(one, { ok: false, refusal: errorMessage }, () => [])
}
