/** gRPC-Web in text over real sockets: bodies in base64, padded and cut anywhere. */
import { request as httpRequest } from "node:http"
import { connect as connectHttp2 } from "node:http2"
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from "@nereid/protocol/health"
import {
  addSub,
  addSubResponse,
  frame,
  inferFrame,
  isHealthy,
  modelInfer,
  modelInferPath,
  rawSession,
  serve,
} from "./GrpcServer.fixture.ts"

const text = "application/grpc-web-text"

interface Answer {
  readonly status: unknown
  readonly type: unknown
  readonly body: string
}

interface Sent {
  readonly path?: string
  readonly headers?: { readonly [name: string]: string }
  /** Called with everything that came so far, after each chunk. */
  readonly onData?: (body: string) => void
}

type Post = (port: number, chunks: ReadonlyArray<string | Uint8Array>, sent?: Sent) => Effect.Effect<Answer>

const overHttp1: Post = (port, chunks, { path = modelInferPath, headers = {}, onData } = {}) =>
  Effect.callback<Answer>((resume) => {
    const all = { "content-type": `${text}+proto`, ...headers }
    const request = httpRequest({ port, path, method: "POST", headers: all }, (response) => {
      let body = ""
      response.setEncoding("latin1").on("data", (chunk: string) => {
        body += chunk
        onData?.(body)
      })
      response.on("close", () =>
        resume(Effect.succeed({ status: response.statusCode, type: response.headers["content-type"], body })),
      )
    })
    request.on("error", () => resume(Effect.succeed({ status: undefined, type: undefined, body: "" })))
    const send = (index: number): void => {
      const chunk = chunks[index]
      if (chunk === undefined) request.end()
      else request.write(chunk, () => send(index + 1))
    }
    send(0)
    return Effect.sync(() => request.destroy())
  })

const overHttp2: Post = (port, chunks, { path = modelInferPath, headers = {} } = {}) =>
  Effect.callback<Answer>((resume) => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": text, ...headers })
    let answer: Answer = { status: undefined, type: undefined, body: "" }
    stream.on("response", ({ ":status": status, "content-type": type }) => (answer = { ...answer, status, type }))
    let body = ""
    stream.setEncoding("latin1").on("data", (chunk: string) => (body += chunk))
    stream.on("close", () => {
      session.close()
      resume(Effect.succeed({ ...answer, body }))
    })
    for (const chunk of chunks) stream.write(chunk)
    stream.end()
  })

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64")

/** Frames of a body in text: messages, and at last the trailers. */
const framesOf = (body: string) => {
  const bytes = Buffer.concat(body.split(/(?<==)(?!=)/).map((part) => Buffer.from(part, "base64")))
  const frames: Array<{ readonly flag: number | undefined; readonly data: Uint8Array }> = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    frames.push({ flag: bytes[at], data: new Uint8Array(bytes.subarray(at + 5, end)) })
    at = end
  }
  return frames
}

const trailersOf = (body: string): string => String(Buffer.from(framesOf(body).at(-1)?.data ?? []))

const request = inferFrame(addSub())

const expectSum = ({ status, body }: Answer) => {
  expect(status).toBe(200)
  const [message, trailers] = framesOf(body)
  expect(fromBinary(modelInfer.output, message?.data ?? new Uint8Array()).rawOutputContents).toEqual(addSubResponse)
  expect(trailers?.flag).toBe(0x80)
  expect(trailersOf(body)).toMatch(/grpc-status: 0/)
}

describe("a request in text", () => {
  it.live.each<readonly [string, ReadonlyArray<string>]>([
    ["in one piece", [base64(request)]],
    ["with padding behind the prefix", [base64(request.subarray(0, 5)) + base64(request.subarray(5))]],
    ["with padding behind each byte", [[...request].map((byte) => base64(Uint8Array.of(byte))).join("")]],
    ["in single characters", [...base64(request)]],
    ["in pieces of three characters", base64(request).match(/.{1,3}/g) ?? []],
  ])("%s is answered in text", ([, chunks]) =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      for (const post of [overHttp1, overHttp2]) {
        const answer = yield* post(port, chunks)
        expect(answer.type).toMatch(/^application\/grpc-web-text(\+proto)?$/)
        expect(answer.body).toMatch(/^[A-Za-z\d+/=]+$/)
        expectSum(answer)
      }
    }),
  )

  it.live("a large one, and its response", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const bytes = Uint8Array.from({ length: 3_000_001 }, (_, index) => index % 251)
      const input = { name: "X", datatype: "UINT8", shape: [BigInt(bytes.length)] }
      const large = inferFrame({ modelName: "echo", inputs: [input], rawInputContents: [bytes] })
      for (const post of [overHttp1, overHttp2]) {
        const { body } = yield* post(port, [base64(large)])
        const [message] = framesOf(body)
        const [output] = fromBinary(modelInfer.output, message?.data ?? new Uint8Array()).rawOutputContents
        expect(Buffer.compare(output ?? new Uint8Array(), bytes)).toBe(0)
      }
    }),
  )

  it.live("the header Accept decides about the response", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const asText = yield* overHttp1(port, [request], {
        headers: { "content-type": "application/grpc-web+proto", accept: `${text}+proto` },
      })
      expect(asText.type).toBe(`${text}+proto`)
      expectSum(asText)
      const asBinary = yield* overHttp1(port, [base64(request)], { headers: { accept: "application/grpc-web+proto" } })
      expect(asBinary.type).toBe("application/grpc-web+proto")
      expectSum({ ...asBinary, body: base64(Buffer.from(asBinary.body, "latin1")) })
      const both = yield* overHttp1(port, [request], { headers: { "content-type": "application/grpc-web+proto" } })
      expect(both.type).toBe("application/grpc-web+proto")
    }),
  )

  it.live("a failure has its status in trailers in text", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const { status, body } = yield* overHttp1(port, [base64(inferFrame(addSub({ modelName: "none" })))])
      expect(status).toBe(200)
      expect(trailersOf(body)).toMatch(/grpc-status: 5/)
    }),
  )

  it.live.each<readonly [string, string, string]>([
    ["a character that is not base64", `${base64(request).slice(0, 8)}*${base64(request).slice(9)}`, "is not base64"],
    ["too much padding", `${base64(request).slice(0, 8)}====`, "is not base64"],
    ["an end within a group", `${base64(request)}AA`, "ends within a group of base64"],
  ])("%s is INVALID_ARGUMENT", ([, sent, message]) =>
    Effect.gen(function* () {
      const server = yield* serve()
      const { status, body } = yield* overHttp1(server.port, [sent])
      expect(status).toBe(200)
      expect(trailersOf(body)).toMatch(/grpc-status: 3/)
      expect(decodeURIComponent(trailersOf(body))).toContain(`the body of ${text} ${message}`)
      expect(yield* isHealthy(yield* rawSession(server))).toBe(true)
    }),
  )
})

describe("limits of a request in text", () => {
  it.live("the size of its message", () =>
    Effect.gen(function* () {
      const { port } = yield* serve({ maxMessageSize: 1000 })
      const { body } = yield* overHttp1(port, [base64(frame(new Uint8Array(1001)))])
      expect(trailersOf(body)).toMatch(/grpc-status: 8/)
      expectSum(yield* overHttp1(port, [base64(request)]))
    }),
  )

  it.live("the memory that all may hold, which each gives back", () =>
    Effect.gen(function* () {
      const { port } = yield* serve({}, { maxInFlightSize: 400_000 })
      const head = base64(request).slice(0, 30)
      const rest = base64(request).slice(30)
      for (let count = 0; count < 10; count++) expectSum(yield* overHttp1(port, [head, rest]))
      expect(yield* overHttp1(port, [base64(frame(new Uint8Array(600_000)))])).toMatchObject({ status: undefined })
      expectSum(yield* overHttp1(port, [head, rest]))
    }),
  )

  it.live("the time of its message", () =>
    Effect.gen(function* () {
      const server = yield* serve({ receiveTimeoutMillis: 20 })
      const session = yield* rawSession(server)
      const code = yield* Effect.callback<number | undefined>((resume) => {
        const stream = session.request({ ":method": "POST", ":path": modelInferPath, "content-type": text })
        stream.on("error", () => {}).on("close", () => resume(Effect.succeed(stream.rstCode)))
        stream.write(base64(request).slice(0, 30))
      })
      expect(code).not.toBe(0)
    }),
  )
})

it.live("each message of a stream is encoded by itself, and sent at once", () =>
  Effect.gen(function* () {
    const { port, gateway } = yield* serve({}, { isStarting: true })
    const watch = frame(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema)))
    const seen = yield* Queue.unbounded<string>()
    yield* Effect.forkChild(
      overHttp1(port, [base64(watch)], {
        path: "/grpc.health.v1.Health/Watch",
        onData: (body) => Queue.offerUnsafe(seen, body),
      }),
    )
    const statuses = (body: string) =>
      framesOf(body).flatMap(({ flag, data }) =>
        flag === 0 ? [fromBinary(HealthCheckResponseSchema, data).status] : [],
      )
    expect(statuses(yield* Queue.take(seen))).toEqual([2])
    gateway.started()
    expect(statuses(yield* Queue.take(seen))).toEqual([2, 1])
  }),
)
