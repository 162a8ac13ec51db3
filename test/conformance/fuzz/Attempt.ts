/** One fuzzing request, generated from its number: the bytes to send, and the expected result. */
import { deflateSync, gzipSync } from "node:zlib"
import { toBinary } from "@bufbuild/protobuf"
import { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import type { GrpcCall } from "../GrpcConnection.ts"
import { frame, type GrpcEncoding, message } from "../GrpcEncoding.ts"
import { encode as encodeHttp, type HttpRequest } from "../HttpEncoding.ts"
import { type Encoding, type InferRequest, possible, type Tensor } from "../InferRequest.ts"
import { mutateBytes, mutateTree } from "./ByteMutation.ts"
import { mutateField } from "./FieldMutation.ts"
import * as GrpcOracle from "./GrpcOracle.ts"
import * as HttpOracle from "./HttpOracle.ts"
import { parse, print } from "./JsonTree.ts"
import { mutateMessage } from "./MessageMutation.ts"
import { Random } from "./Random.ts"
import { validRequest } from "./ValidRequest.ts"
import { Refusal } from "./Verdict.ts"

export type Sent =
  | { readonly protocol: "HTTP"; readonly request: HttpRequest }
  | { readonly protocol: "gRPC"; readonly call: GrpcCall; readonly through: Through; readonly stream: boolean }

/** Before Connect, or by it. */
export type Through = "normal" | "connect"

export interface Attempt {
  readonly description: string
  readonly sent: Sent
  /** The id of the request, and the model, where nothing has touched them. */
  readonly request: InferRequest
  /** Undefined where it deserves a refusal. */
  readonly outputs: ReadonlyArray<Tensor> | undefined
  /** A reason to think that it does, from how it was made: the oracle must agree. */
  readonly breaks: boolean
}

export const attempt = (seed: number, index: number): Attempt => {
  const random = Random.of(seed, index)
  let request = validRequest(random)
  const done: Array<string> = []
  let breaks = false
  const byField = random.chance(0.5)
  for (let left = byField ? changes(random) : 0; left > 0; left--) {
    const mutated = mutateField(random, request)
    // A second change may undo what the first has broken.
    breaks = mutated.breaks && done.length === 0
    request = mutated.request
    done.push(mutated.description)
  }
  breaks &&= done.length === 1
  const [first] = request.inputs
  const encodings: ReadonlyArray<Encoding> =
    first !== undefined && request.inputs.length === 1 && random.chance(0.05) ? ["HTTP raw body"] : possible(request)
  const encoding = random.pick(encodings)
  done.push(encoding)
  const make = isGrpc(encoding) ? overGrpc : overHttp
  const sent = make(random, request, encoding, byField, done)
  return {
    description: done.join(", "),
    sent,
    request,
    outputs: verdict(sent),
    breaks: breaks && encoding !== "HTTP raw body",
  }
}

/** How many; none leaves a request that is right, and must be answered. */
const changes = (random: Random): number => random.pick([0, 0, 1, 1, 1, 1, 1, 2])

const overHttp = (
  random: Random,
  request: InferRequest,
  encoding: Encoding,
  byField: boolean,
  done: Array<string>,
): Sent => {
  if (isGrpc(encoding)) throw new TypeError("This is HTTP")
  let http = encodeHttp(request, encoding)
  const isJson = encoding === "HTTP JSON" || encoding === "HTTP JSON nested"
  if (!byField) {
    for (let left = changes(random); left > 0; left--) {
      const body = Buffer.from(http.body ?? "")
      if (isJson && random.chance(0.6)) {
        done.push("a node of the tree")
        const tree = tryParse(body)
        if (tree !== undefined) http = { ...http, body: print(mutateTree(random, tree)) }
      } else if (random.chance(0.8)) {
        done.push("bytes")
        http = { ...http, body: mutateBytes(random, body) }
      } else {
        const headers = random.pick(headerMutations)(random, body)
        done.push(JSON.stringify(headers))
        http = { ...http, headers: { ...http.headers, ...headers } }
      }
    }
  }
  if (random.chance(0.1)) {
    const encoding = random.pick(["gzip", "deflate"] as const)
    const whole = (encoding === "gzip" ? gzipSync : deflateSync)(Buffer.from(http.body ?? ""))
    done.push(encoding)
    const body = random.chance(0.2) ? mutateBytes(random, whole) : whole
    http = { ...http, body, headers: { ...http.headers, "content-encoding": encoding } }
  }
  return { protocol: "HTTP", request: http }
}

const isGrpc = (encoding: Encoding): encoding is GrpcEncoding => encoding.startsWith("gRPC ")

const tryParse = (body: Uint8Array) => {
  try {
    return parse(body)
  } catch {
    return undefined
  }
}

const headerMutations: ReadonlyArray<(random: Random, body: Buffer) => HttpRequest["headers"]> = [
  (random, body) => ({ "inference-header-content-length": String(random.below(body.length + 2) - random.below(2)) }),
  (random) => ({ "inference-header-content-length": random.pick(["", "x", "-1", "1e1", "2147483648", " 0", "0x1"]) }),
  (random) => ({ "content-encoding": random.pick(["br", "identity", "gzip", "deflate", "gzip, gzip", ""]) }),
  (random) => ({ "accept-encoding": random.pick(["br", "identity;q=0", "*;q=0", ";;;,,,", "gzip;q=nan"]) }),
  (random) => ({ "nereid-timeout-ms": random.pick(["100000", "x", "-5", "1e5", "", "99999.5"]) }),
  (random) => ({ [random.pick(["x-any", "content-type", "accept", "te"])]: random.pick(["", "x", "\u00ff", "a;b=c"]) }),
]

const overGrpc = (
  random: Random,
  request: InferRequest,
  encoding: Encoding,
  byField: boolean,
  done: Array<string>,
): Sent => {
  const typed: GrpcEncoding = encoding === "gRPC contents" ? encoding : "gRPC raw"
  const decoded = message(request, typed)
  const byMessage = !byField && random.chance(0.5)
  if (byMessage) for (let left = changes(random); left > 0; left--) done.push(mutateMessage(random, decoded))
  let bytes: Uint8Array = toBinary(ModelInferRequestSchema, decoded)
  for (let left = byField || byMessage ? 0 : changes(random); left > 0; left--) {
    done.push("bytes")
    bytes = mutateBytes(random, bytes)
  }
  const through = random.chance(0.8) ? "normal" : "connect"
  done.push(through)
  const stream = encoding === "gRPC stream"
  const method = stream ? "ModelStreamInfer" : "ModelInfer"
  const whole = Buffer.from(frame(bytes))
  // Wrong prefixes are not sent through Connect, which words their errors itself.
  if (through === "normal" && !stream && random.chance(0.05)) {
    done.push("prefix")
    whole[random.pick([0, 1, 2, 3, 4, 4])] = random.pick([0, 1, 2, 255, random.below(256)])
    return { protocol: "gRPC", call: { chunks: [whole], method }, through, stream }
  }
  const at = random.below(whole.length)
  const chunks = random.chance(0.2) ? [whole.subarray(0, at), whole.subarray(at)] : [whole]
  const headers = random.chance(0.05) ? random.pick(metadata) : {}
  done.push(JSON.stringify(headers))
  return { protocol: "gRPC", call: { chunks, method, headers }, through, stream }
}

const metadata: ReadonlyArray<Readonly<Record<string, string>>> = [
  ...["100S", "1H", "x", "", "1", "-1S", "123456789S"].map((timeout) => ({ "grpc-timeout": timeout })),
  { "grpc-encoding": "identity" },
  { "grpc-accept-encoding": "gzip,deflate,x" },
  { "x-any-bin": "AAE" },
  { authorization: "\u00ff" },
]

const verdict = (sent: Sent): ReadonlyArray<Tensor> | undefined => {
  try {
    if (sent.protocol === "HTTP") return HttpOracle.outputsOf(sent.request)
    return GrpcOracle.outputsOf(sent.call)
  } catch (error) {
    if (error instanceof Refusal || error instanceof SyntaxError) return undefined
    throw error
  }
}
