/**
 * Messages with wrong wire types and invalid text, on all paths of the gRPC port. Triton 2.51 accepts and refuses the
 * same. GeneralMessage.test.ts has all forms.
 */
import { gzipSync } from "node:zlib"
import { fromBinary } from "@bufbuild/protobuf"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import {
  addSub,
  addSubResponse,
  frame,
  inferFrame,
  modelInfer,
  modelInferPath,
  rawCall,
  rawSession,
  serve,
} from "./GrpcServer.fixture.ts"

const { modelReady, modelStreamInfer } = GRPCInferenceService.method

const whole = inferFrame(addSub({ id: "1" })).subarray(5)

const withField = (...field: ReadonlyArray<number>) => Uint8Array.of(...whole, ...field)

/** Fields that are ignored: ids as a varint, as four bytes and as a group, and an input as a varint. */
const ignored = [withField(0x18, 5), withField(0x1d, 1, 2, 3, 4), withField(0x1b, 0x1c), withField(0x28, 5)]

/** An id that is not UTF-8, an unknown wire type, and an input whose name ends behind it. */
const refused = [withField(0x1a, 1, 0xff), withField(0x1e, 1), withField(0x2a, 1, 0x0a, 0, 0)]

const result = (message: Uint8Array) => {
  const { id, rawOutputContents } = fromBinary(modelInfer.output, new Uint8Array(message))
  return { id, rawOutputContents }
}

const expected = { id: "1", rawOutputContents: addSubResponse }

const streamPath = modelInferPath.replace("ModelInfer", "ModelStreamInfer")

describe.each([true, false])("fastInference: %s", (fastInference) => {
  it.live("a call ignores fields of wrong wire types", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      for (const message of ignored) {
        const { status, body } = yield* rawCall(session, { chunks: [frame(message)] })
        expect(status).toBe("0")
        expect(result(body.subarray(5))).toEqual(expected)
      }
    }),
  )

  it.live("a stream ignores them too", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      for (const message of ignored) {
        const call = { chunks: [frame(message)], headers: { ":path": streamPath } }
        const { status, body } = yield* rawCall(session, call)
        expect(status).toBe("0")
        expect(fromBinary(modelStreamInfer.output, new Uint8Array(body.subarray(5))).inferResponse).toMatchObject(
          expected,
        )
      }
    }),
  )

  it.live("invalid messages are refused", () =>
    Effect.gen(function* () {
      const session = yield* rawSession(yield* serve({ fastInference }))
      for (const chunk of refused.map((bytes) => frame(bytes))) {
        const call = yield* rawCall(session, { chunks: [chunk] })
        expect(call).toMatchObject({ status: fastInference ? "3" : "13", message: expect.stringContaining("parse") })
        const stream = yield* rawCall(session, { chunks: [chunk], headers: { ":path": streamPath } })
        expect(stream).toMatchObject({ status: "13", message: expect.stringContaining("parse") })
      }
    }),
  )
})

it.live("compressed messages are read alike", () =>
  Effect.gen(function* () {
    const session = yield* rawSession(yield* serve())
    const headers = { "grpc-encoding": "gzip", "grpc-accept-encoding": "identity" }
    for (const message of ignored) {
      const { body } = yield* rawCall(session, { chunks: [frame(gzipSync(message), 1)], headers })
      expect(result(body.subarray(5))).toEqual(expected)
    }
    for (const message of refused) {
      const call = yield* rawCall(session, { chunks: [frame(gzipSync(message), 1)], headers })
      expect(call).toMatchObject({ status: "13", message: expect.stringContaining("parse") })
    }
  }),
)

it.live("other calls are read alike", () =>
  Effect.gen(function* () {
    const session = yield* rawSession(yield* serve())
    const call = (...message: ReadonlyArray<number>) =>
      rawCall(session, {
        chunks: [frame(Uint8Array.from(message))],
        headers: { ":path": modelInferPath.replace("ModelInfer", "ModelReady") },
      })
    const name = [0x0a, 6, ...Buffer.from("addsub")]
    for (const message of [name, [...name, 0x10, 9], [0x08, 1, ...name], [...name, 0x15, 1, 2, 3, 4]]) {
      const { status, body } = yield* call(...message)
      expect([status, fromBinary(modelReady.output, body.subarray(5)).ready]).toEqual(["0", true])
    }
    for (const bytes of [
      [0x0a, 1, 0xff],
      [...name, 0x16, 1],
    ]) {
      expect(yield* call(...bytes)).toMatchObject({ status: "13", message: expect.stringContaining("parse") })
    }
  }),
)

describe("the Connect protocol", () => {
  const post = (port: number, path: string, type: string, body: Uint8Array | string) =>
    Effect.promise(async () => {
      const url = `http://127.0.0.1:${port}${path}`
      const init = { method: "POST", headers: { "content-type": type }, body: Buffer.from(body) }
      const response = await fetch(url, init)
      return { status: response.status, body: Buffer.from(await response.arrayBuffer()) }
    })

  it.live("binary messages are read alike", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      for (const message of ignored) {
        const { body } = yield* post(port, modelInferPath, "application/proto", message)
        expect(result(body)).toEqual(expected)
      }
      for (const message of refused) {
        const { status, body } = yield* post(port, modelInferPath, "application/proto", message)
        expect([status, JSON.parse(String(body)).code]).toEqual([500, "internal"])
      }
    }),
  )

  it.live("JSON with duplicate keys, or that is not UTF-8, is refused", () =>
    Effect.gen(function* () {
      const { port } = yield* serve()
      const ready = (text: string | Uint8Array) =>
        post(port, modelInferPath.replace("ModelInfer", "ModelReady"), "application/json", text)
      const { status, body } = yield* ready('{"name":"addsub","other":1}')
      expect([status, String(body)]).toEqual([200, '{"ready":true}'])
      for (const text of [
        '{"name":"addsub","name":"addsub"}',
        Uint8Array.of(...Buffer.from('{"name":"addsub","version":"'), 0xff, 0x22, 0x7d),
        Uint8Array.of(...Buffer.from('{"name":"addsub","other":"'), 0xff, 0x22, 0x7d),
      ]) {
        const refusal = yield* ready(text)
        expect([refusal.status, JSON.parse(String(refusal.body)).code]).toEqual([400, "invalid_argument"])
      }
    }),
  )
})
