/**
 * Fuzzing below the protocol: conversations as bytes, including headers and frames, with random changes. Each uses a
 * separate connection, which the client then half-closes. Over HTTP/1.1 the server must answer, over HTTP/2 it need
 * not; each connection must end, replies must be valid, and the server must stay healthy.
 */
import { connect } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { encode as encodeFrame, Flag, headerBlock, preface, Type } from "./Http2Frame.ts"
import { Connections } from "../Connections.ts"
import { encode as encodeGrpc } from "../GrpcEncoding.ts"
import { bytesOf } from "../HttpConnection.ts"
import { encode as encodeHttp } from "../HttpEncoding.ts"
import { type InferRequest, tensor } from "../InferRequest.ts"
import { within } from "../within.ts"
import { mutateBytes } from "./ByteMutation.ts"
import { Random } from "./Random.ts"
import { seed } from "./settings.ts"

const count = 1000

/** Connections that are open at one time. */
const width = 16

const request: InferRequest = { model: "single_fp32", id: "1", inputs: [tensor("X", "FP32", [2], [1, 2])] }

const overHttp = (random: Random): Uint8Array => {
  const encoding = random.pick(["HTTP JSON", "HTTP binary"] as const)
  const live = bytesOf({ path: "/v2/health/live" })
  const parts = [bytesOf(encodeHttp(request, encoding)), live, bytesOf(encodeHttp(request, encoding))]
  return mutated(random, Buffer.concat(parts.slice(0, 1 + random.below(3))))
}

const mutated = (random: Random, bytes: Uint8Array): Uint8Array => {
  let changed = bytes
  for (let left = 1 + random.below(3); left > 0; left--) changed = mutateBytes(random, changed)
  return changed
}

const headers = { ":method": "POST", ":scheme": "http", ":authority": "conformance" }

const grpcHeaders = { ...headers, "content-type": "application/grpc", te: "trailers" }

const methods = ["ModelInfer", "ModelStreamInfer"] as const

interface Call {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

const overGrpc = (random: Random): Uint8Array => {
  const path = `/inference.GRPCInferenceService/${random.pick(methods)}`
  return inFrames(random, { headers: { ...grpcHeaders, ":path": path }, body: encodeGrpc(request, "gRPC raw") })
}

const overHttp2 = (random: Random): Uint8Array => {
  const encoding = random.pick(["HTTP JSON", "HTTP binary"] as const)
  const { path, headers: own = {}, body = "" } = encodeHttp(request, encoding)
  return inFrames(random, { headers: { ...headers, ":path": path, ...own }, body: Buffer.from(body) })
}

/** Changed inside of its frames, whose lengths are then right, or anywhere. */
const inFrames = (random: Random, { headers, body }: Call): Uint8Array => {
  const inside = random.chance(0.7)
  const maybe = (bytes: Uint8Array) => (inside && random.chance(0.3) ? mutateBytes(random, bytes) : bytes)
  const flags = (right: number) => (inside && random.chance(0.1) ? random.below(256) : right)
  const calls = Array.from({ length: 1 + random.below(3) }, (_, index) => [
    encodeFrame(Type.HEADERS, flags(Flag.END_HEADERS), 2 * index + 1, maybe(headerBlock(headers))),
    encodeFrame(Type.DATA, flags(Flag.END_STREAM), 2 * index + 1, maybe(body)),
    ...(inside && random.chance(0.2)
      ? [encodeFrame(random.below(12), random.below(256), random.below(8), random.bytes(8))]
      : []),
  ])
  const whole = Buffer.concat([preface, ...calls.flat()])
  return inside ? whole : mutated(random, whole)
}

/** Comes back where HTTP/2 has survived what stood before it. */
const ping = Buffer.from("conforms")

/** How long a caller waits for that, in milliseconds, before it sends no more. */
const gracePeriod = 50

/** All that comes back to the bytes, once the connection is gone. */
const converse = (port: number, bytes: Uint8Array, last?: Uint8Array): Promise<Buffer> => {
  let back = Buffer.alloc(0)
  const closed = new Promise<Buffer>((resolve) => {
    let timer: NodeJS.Timeout | undefined
    const socket = connect(port, "127.0.0.1", () => {
      if (last === undefined) return void socket.end(bytes)
      socket.write(Buffer.concat([bytes, last]))
      timer = setTimeout(() => socket.end(), gracePeriod)
    })
    socket.on("data", (chunk: Buffer) => {
      back = Buffer.concat([back, chunk])
      if (back.includes(ping)) socket.end()
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      clearTimeout(timer)
      resolve(back)
    })
  })
  return within(10_000, "the end of a connection whose caller has sent all", closed)
}

/** Statuses that a caller can be answered with here; 500 only for an extent that is not an unsigned integer. */
const statuses = new Set(["100", "102", "200", "400", "404", "405", "408", "415", "417", "431", "500", "501", "503"])

const problemOf = (version: "HTTP/1.1" | "HTTP/2", sent: Uint8Array, back: Buffer): string | undefined => {
  const text = back.toString("latin1")
  if (/internal error/i.test(text)) return text
  if (version === "HTTP/2") return undefined
  // The client has ended its side, and still has an answer to whatever it has sent.
  if (text === "") return isAnswered(sent) ? "no answer" : undefined
  const found = [...text.matchAll(/HTTP\/1\.1 ([0-9]{3})/g)].map(([, status = ""]) => status)
  return text.startsWith("HTTP/1.1 ") && found.every((status) => statuses.has(status)) ? undefined : text
}

/** Whether bytes are more than the start of a preface, for whose end the server waits. */
const isAnswered = (sent: Uint8Array): boolean => {
  const text = Buffer.from(sent).toString("latin1").trim()
  return !"PRI * HTTP/2.0".startsWith(text)
}

layer(Connections.layer, { excludeTestServices: true })("fuzzing below the protocol", (it) => {
  for (const [protocol, version, make, server] of [
    ["HTTP", "HTTP/1.1", overHttp, "normal"],
    ["gRPC", "HTTP/2", overGrpc, "normal"],
    ["gRPC through Connect", "HTTP/2", overGrpc, "connect"],
    ["HTTP, on one port", "HTTP/1.1", overHttp, "normalOnOne"],
    ["gRPC, on one port", "HTTP/2", overGrpc, "normalOnOne"],
    ["HTTP over HTTP/2", "HTTP/2", overHttp2, "normalOnOne"],
  ] as const) {
    it.effect(
      `${count} conversations over ${protocol}, seed ${seed}`,
      () =>
        Effect.gen(function* () {
          const connections = yield* Connections
          const { http, grpc } = connections.servers[server]
          const port = version === "HTTP/1.1" ? http : grpc
          const run = async (index: number): Promise<string | undefined> => {
            const random = Random.of(seed, index)
            const last = version === "HTTP/2" ? encodeFrame(Type.PING, 0, 0, ping) : undefined
            const bytes = make(random)
            const problem = problemOf(version, bytes, await converse(port, bytes, last))
            return problem && `${index}: ${problem}`
          }
          const problems = yield* Effect.promise(async () => {
            const found: Array<string> = []
            for (let start = 0; start < count; start += width) {
              const all = await Promise.all(Array.from({ length: width }, (_, offset) => run(start + offset)))
              found.push(...all.flatMap((problem) => problem ?? []))
            }
            const { status } = await (await connections.http(server)).request({ path: "/v2/health/ready" })
            const call = await (await connections.grpc(server)).call({ chunks: [encodeGrpc(request, "gRPC raw")] })
            if (status !== 200 || call.code !== 0)
              found.push(`afterwards the server answers ${status} and ${call.code}`)
            return found
          })
          assert.deepStrictEqual(problems.slice(0, 5), [])
        }),
      120_000,
    )
  }
})
