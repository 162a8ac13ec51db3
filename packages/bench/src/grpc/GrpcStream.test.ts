/** Consecutive requests on streams of grpc-js, and the problems reported for unexpected replies. */
import type { ServerDuplexStream } from "@grpc/grpc-js"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { ModelInferRequestSchema, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { expect, it, onTestFinished } from "vitest"
import * as ClosedLoop from "../load/ClosedLoop.ts"
import * as Lane from "../load/Lane.ts"
import { serve } from "./GrpcServer.fixture.ts"
import * as GrpcStream from "./GrpcStream.ts"

type Reply = MessageInitShape<typeof ModelStreamInferResponseSchema>

const encode = (reply: Reply) =>
  Buffer.from(toBinary(ModelStreamInferResponseSchema, create(ModelStreamInferResponseSchema, reply)))

const idOf = (request: Buffer) => fromBinary(ModelInferRequestSchema, request).id

const response = (id: string, raw: Uint8Array = new Uint8Array(8)): Reply => ({
  inferResponse: { modelName: "m", id, rawOutputContents: [raw] },
})

const message = (size: number) =>
  toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: "m",
      id: GrpcStream.idPlaceholder,
      rawInputContents: [new Uint8Array(size)],
    }),
  )

/** Tag and length of the name, and of the id. */
const idOffset = 3 + 2

interface LoadOptions {
  readonly size?: number
  readonly replyLength?: number | undefined
  readonly decoupled?: boolean
  readonly hasIds?: boolean
  readonly requests?: number
  readonly lanes?: number
}

const load = async (stream: (call: ServerDuplexStream<Buffer, Buffer>) => void, options: LoadOptions = {}) => {
  const {
    size = 4,
    replyLength = encode(response(GrpcStream.idPlaceholder)).length,
    decoupled = false,
    hasIds = true,
  } = options
  const request = {
    message: message(size),
    idOffset,
    replyLength: "replyLength" in options ? options.replyLength : replyLength,
  }
  const target = GrpcStream.target(await serve({ stream }), { requests: [request], decoupled, hasIds })
  const lanes = await Lane.openAll(target, options.lanes ?? 2)
  onTestFinished(() => lanes.forEach((lane) => lane.close()))
  const measured = await ClosedLoop.run(lanes, { concurrency: 16, requests: options.requests ?? 16, patience: 5000 })
  return { ...measured, problems: Object.fromEntries(measured.problems.messages) }
}

it("matches responses to requests by id, in any order", async () => {
  const ids: Array<string> = []
  const measured = await load(
    (call) => {
      let waiting: Array<string> = []
      call.on("data", (request: Buffer) => {
        ids.push(idOf(request))
        waiting.push(idOf(request))
        if (waiting.length < 8) return
        for (const id of waiting.toReversed()) call.write(encode(response(id)))
        waiting = []
      })
    },
    { requests: 1024, lanes: 1 },
  )
  expect(measured).toMatchObject({ requests: 1024, problems: {} })
  expect(ids).toEqual(Array.from({ length: 1024 }, (_, index) => String(index).padStart(8, "0")))
})

it("messages of 3 MB go both ways", async () => {
  const raw = new Uint8Array(3_000_000)
  const measured = await load(
    (call) => call.on("data", (request: Buffer) => call.write(encode(response(idOf(request), raw)))),
    { size: 3_000_000, replyLength: encode(response(GrpcStream.idPlaceholder, raw)).length, requests: 32 },
  )
  expect(measured).toMatchObject({ requests: 32, problems: {} })
})

it("replies without ids are taken in the order of the requests", async () => {
  const measured = await load((call) => call.on("data", () => call.write(encode(response("")))), {
    replyLength: encode(response("")).length,
    hasIds: false,
    requests: 100,
  })
  expect(measured).toMatchObject({ requests: 100, problems: {} })
})

it("a request to a decoupled model ends with its final response", async () => {
  let replies = 0
  const measured = await load(
    (call) =>
      call.on("data", (request: Buffer) => {
        for (const value of [false, false, true]) {
          replies += 1
          const parameters = { triton_final_response: { parameterChoice: { case: "boolParam" as const, value } } }
          call.write(encode({ inferResponse: { id: idOf(request), parameters } }))
        }
      }),
    { decoupled: true, requests: 50 },
  )
  expect(measured).toMatchObject({ requests: 50, problems: {} })
  expect(replies).toBe(150)
})

it("reports the message of an error, and continues the stream", async () => {
  let count = 0
  const measured = await load(
    (call) =>
      call.on("data", (request: Buffer) => {
        const id = idOf(request)
        call.write(encode(++count % 2 === 0 ? response(id) : { errorMessage: "out of memory", inferResponse: { id } }))
      }),
    { requests: 40 },
  )
  expect(measured).toMatchObject({ requests: 20, problems: { "out of memory": 20 }, reconnections: 0 })
})

it("a length that differs is a problem", async () => {
  const { problems } = await load((call) =>
    call.on("data", (request: Buffer) => call.write(encode(response(idOf(request), new Uint8Array(9))))),
  )
  expect(problems).toEqual({ "the response has 26 bytes, expected 25": 16 })
})

it("a reply to no request ends its stream, and what waits on it", async () => {
  const { problems } = await load((call) => call.on("data", () => call.write(encode(response("?")))), {
    requests: 8,
    lanes: 1,
  })
  expect(problems).toEqual({ 'the response matches no request: its id is "?"': 8 })
})

it("a stream that the server ends is opened again; what waited on it has its status", async () => {
  let streams = 0
  const { requests, problems, reconnections } = await load(
    (call) => {
      const own = ++streams
      call.on("data", (request: Buffer) => {
        if (own === 1) call.emit("error", { code: 8, details: "too much" })
        else call.write(encode(response(idOf(request))))
      })
    },
    { requests: 40, lanes: 1 },
  )
  expect(problems).toEqual({ "the server ended the stream: RESOURCE_EXHAUSTED: too much": 16 })
  expect({ requests, reconnections }).toEqual({ requests: 24, reconnections: 1 })
})
