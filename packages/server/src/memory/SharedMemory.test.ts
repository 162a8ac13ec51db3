/** Shared memory over both protocols: registering regions, and requests whose tensors are in them (C39). */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { create } from "@bufbuild/protobuf"
import { createGrpcTransport } from "@connectrpc/connect-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Queue, Stream } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { connection } from "../grpc/GrpcClient.fixture.ts"
import { clients, type Outcome } from "../grpc/GrpcServer.fixture.ts"
import { SystemSharedMemory, type SystemSharedMemoryOptions } from "./SystemSharedMemory.ts"
import type { TraceSettings } from "../trace/TraceSettings.ts"
import * as Tracing from "../trace/Tracing.ts"
import { serve } from "../TwoPorts.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32("n"), TEXT: Tensor.BYTES(1) },
  outputs: { Y: Tensor.FP32("n"), TEXT: Tensor.BYTES(1) },
}) {}

/** Two responses: the input, and one more. */
class Count extends Model.Service<Count>()("count", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

const {
  systemSharedMemoryRegister,
  systemSharedMemoryStatus,
  systemSharedMemoryUnregister,
  cudaSharedMemoryRegister,
  cudaSharedMemoryStatus,
  cudaSharedMemoryUnregister,
  modelInfer,
  modelStreamInfer,
} = GRPCInferenceService.method

const harness = Effect.fnUntraced(function* (options: SystemSharedMemoryOptions = {}, trace?: Partial<TraceSettings>) {
  const parent = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "regions-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  )
  const directory = join(parent, "objects")
  mkdirSync(directory)
  const sharedMemory = yield* Effect.acquireRelease(
    Effect.sync(() => new SystemSharedMemory({ directory, ...options })),
    (memory) => Effect.sync(() => memory.close()),
  )
  const started = yield* Queue.unbounded<Deferred.Deferred<void>>()
  const context = yield* Layer.build(
    Layer.mergeAll(
      Model.each(Echo, ({ X, TEXT }) => Effect.succeed({ Y: X, TEXT })),
      Model.stream(Count, ({ X }) =>
        Stream.make(
          { Y: X },
          {
            Y: Tensor.make(
              "FP32",
              X.shape,
              X.data.map((x) => x + 1),
            ),
          },
        ),
      ),
      Model.each(
        Gated,
        Effect.fnUntraced(function* ({ X }) {
          const gate = yield* Deferred.make<void>()
          yield* Queue.offer(started, gate)
          yield* Deferred.await(gate)
          return { Y: X }
        }),
      ),
    ),
  )
  const services = yield* Effect.provideContext(Effect.all([Echo, Count, Gated]), context)
  const models = services.map(({ model }) => model)
  const tracing =
    trace === undefined
      ? Tracing.disabled
      : yield* Tracing.make(ModelStore.of(models), trace, { id: "nereid", version: "0" })
  const server = yield* serve(models, { sharedMemory, tracing })
  const file = (name: string) => join(directory, name)
  return { ...server, directory, file, started }
})

type Harness = Effect.Success<ReturnType<typeof harness>>

const floats = (...values: ReadonlyArray<number>) => new Uint8Array(Float32Array.from(values).buffer)

const text = (value: string) => {
  const bytes = new Uint8Array(4 + value.length)
  bytes[0] = value.length
  bytes.set(Buffer.from(value), 4)
  return bytes
}

const registering = (key: string, byteSize: number | string, offset?: number | string) =>
  `{"key":"${key}",${offset === undefined ? "" : `"offset":${offset},`}"byte_size":${byteSize}}`

/** An object of 64 bytes with two regions in it: `in` is its first half, `out` its second. */
const twoRegions = Effect.fnUntraced(function* ({ file, post }: Harness) {
  const object = Buffer.alloc(64)
  object.set(floats(1, 2, 3), 4)
  object.set(text("naive"), 16)
  writeFileSync(file("object"), object)
  for (const [name, offset] of [
    ["in", 0],
    ["out", 32],
  ] as const) {
    const response = yield* post(`/v2/systemsharedmemory/region/${name}/register`, registering("/object", 32, offset))
    assert.deepStrictEqual([response.status, response.text], [200, ""])
  }
})

const jsonRegion = (name: string, byteSize: number, offset?: number, more = "") =>
  `"parameters":{"shared_memory_region":"${name}","shared_memory_byte_size":${byteSize}` +
  `${offset === undefined ? "" : `,"shared_memory_offset":${offset}`}${more}}`

const jsonRequest = (
  x: string = jsonRegion("in", 12, 4),
  y: string = jsonRegion("out", 12, 8),
  data = '"data":["hi"]',
) =>
  `{"inputs":[{"name":"X","datatype":"FP32","shape":[3],${x}},{"name":"TEXT","datatype":"BYTES","shape":[1],${data}}],` +
  `"outputs":[{"name":"Y",${y}},{"name":"TEXT"}]}`

const region = (name: string, byteSize: bigint, offset?: bigint) => ({
  shared_memory_region: { parameterChoice: { case: "stringParam" as const, value: name } },
  shared_memory_byte_size: { parameterChoice: { case: "int64Param" as const, value: byteSize } },
  ...(offset === undefined
    ? {}
    : { shared_memory_offset: { parameterChoice: { case: "int64Param" as const, value: offset } } }),
})

const grpcRequest = (x = region("in", 12n, 4n), y = region("out", 12n, 8n)) => ({
  modelName: "echo",
  inputs: [
    { name: "X", datatype: "FP32", shape: [3n], parameters: x },
    { name: "TEXT", datatype: "BYTES", shape: [1n] },
  ],
  outputs: [{ name: "Y", parameters: y }, { name: "TEXT" }],
  rawInputContents: [text("hi")],
})

const infer = "/v2/models/echo/infer"

const failureOf = (outcome: Outcome<unknown>) => {
  assert("code" in outcome)
  return [outcome.code, outcome.message]
}

describe("not allowed, which is the default", () => {
  it.live("refuses regions, and lists none", () =>
    Effect.gen(function* () {
      const { post, get, call } = yield* serve([])
      const message = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
      for (const path of ["register", "region/r/register", "region/r/unregister", "unregister"]) {
        for (const body of [registering("/k", 4), "{"]) {
          const response = yield* post(`/v2/systemsharedmemory/${path}`, body)
          assert.deepStrictEqual([response.status, response.text], [501, JSON.stringify({ error: message })], path)
        }
      }
      assert.deepStrictEqual(failureOf(yield* call(systemSharedMemoryRegister, { name: "r" })), [12, message])
      assert.deepStrictEqual(failureOf(yield* call(systemSharedMemoryUnregister, {})), [12, message])
      const status = yield* get("/v2/systemsharedmemory/status")
      assert.deepStrictEqual([status.status, status.text], [200, "[]"])
      const outcome = yield* call(systemSharedMemoryStatus, {})
      assert("response" in outcome)
      assert.deepStrictEqual(outcome.response.regions, {})
    }),
  )

  it.live("so are requests with tensors in them", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(Model.each(Echo, ({ X, TEXT }) => Effect.succeed({ Y: X, TEXT })))
      const { model } = yield* Effect.provideContext(Echo, context)
      const { post, call } = yield* serve([model])
      const message = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
      const response = yield* post(infer, jsonRequest())
      assert.deepStrictEqual([response.status, response.text], [501, JSON.stringify({ error: message })])
      assert.deepStrictEqual(failureOf(yield* call(modelInfer, grpcRequest())), [12, message])
    }),
  )
})

describe("regions", () => {
  it.live("over HTTP: registered, shown, forgotten", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const { get, post } = server
      const shown = (name: string, offset: number) => ({ name, key: "/object", offset, byte_size: 32 })
      const status = () => Effect.map(get("/v2/systemsharedmemory/status"), (response) => JSON.parse(response.text))
      assert.deepStrictEqual(yield* status(), [shown("in", 0), shown("out", 32)])
      const one = yield* get("/v2/systemsharedmemory/region/o%75t/status")
      assert.strictEqual(one.text, '[{"name":"out","key":"/object","offset":32,"byte_size":32}]')
      const unregistered = yield* post("/v2/systemsharedmemory/region/in/unregister", "")
      assert.deepStrictEqual([unregistered.status, unregistered.text], [200, ""])
      // Registrations of missing memory are already removed.
      assert.strictEqual((yield* post("/v2/systemsharedmemory/region/in/unregister", "")).status, 200)
      assert.deepStrictEqual(yield* status(), [shown("out", 32)])
      const unknown = yield* get("/v2/systemsharedmemory/region/in/status")
      const error = "Unable to find system shared memory region: 'in'"
      assert.deepStrictEqual([unknown.status, unknown.text], [404, JSON.stringify({ error })])
      assert.strictEqual((yield* post("/v2/systemsharedmemory/unregister", "")).status, 200)
      assert.deepStrictEqual(yield* status(), [])
    }),
  )

  it.live("over gRPC: registered, shown, forgotten", () =>
    Effect.gen(function* () {
      const { file, call } = yield* harness()
      writeFileSync(file("object"), Buffer.alloc(64))
      const added = yield* call(systemSharedMemoryRegister, { name: "r", key: "/object", offset: 8n, byteSize: 56n })
      assert("response" in added)
      const status = yield* call(systemSharedMemoryStatus, { name: "r" })
      assert("response" in status)
      const { name, key, offset, byteSize } = status.response.regions["r"] ?? {}
      assert.deepStrictEqual([name, key, offset, byteSize], ["r", "/object", 8n, 56n])
      const error = "Unable to find system shared memory region: 'x'"
      assert.deepStrictEqual(failureOf(yield* call(systemSharedMemoryStatus, { name: "x" })), [5, error])
      const repeated = yield* call(systemSharedMemoryRegister, { name: "r", key: "object", byteSize: 1n })
      assert.deepStrictEqual(failureOf(repeated), [6, "shared memory region 'r' already in manager"])
      assert("response" in (yield* call(systemSharedMemoryUnregister, { name: "r" })))
      const none = yield* call(systemSharedMemoryStatus, {})
      assert("response" in none)
      assert.deepStrictEqual(none.response.regions, {})
    }),
  )

  it.live("invalid registrations", () =>
    Effect.gen(function* () {
      const { directory, file, post, get } = yield* harness({ maxRegions: 1 })
      writeFileSync(file("object"), Buffer.alloc(64))
      writeFileSync(join(directory, "..", "outside"), Buffer.alloc(64))
      symlinkSync("../outside", file("link"))
      mkdirSync(file("directory"))
      const open = (key: string) => [400, `Unable to open shared memory region: '${key}'`] as const
      const invalid = [400, "failed to register shared memory region 'r': invalid args"] as const
      const reserved = (key: string) =>
        [
          400,
          `cannot register shared memory region 'r' with key '${key}' as the key contains the reserved prefix ` +
            "'triton_python_backend_shm_region_'",
        ] as const
      const noKey = (key: string) =>
        [400, `failed to register shared memory region 'r': invalid shm key '${key}'`] as const
      const cannot = (field: string, kind: string) =>
        [400, `Unable to parse '${field}': attempt to access JSON non-${kind} as ${kind}`] as const
      const missing = (field: string) =>
        [400, `Unable to parse '${field}': attempt to access non-existing object member '${field}'`] as const
      const key = "triton_python_backend_shm_region_1"
      const cases: ReadonlyArray<readonly [string, readonly [number, string]]> = [
        [registering("/none", 4), open("/none")],
        [registering("/../outside", 4), open("/../outside")],
        [registering("..", 4), open("..")],
        [registering("link", 4), open("link")],
        [registering("directory", 4), open("directory")],
        [registering("/", 4), noKey("/")],
        [registering("", 4), noKey("")],
        [registering("a/object", 4), open("a/object")],
        [registering("object\\u0000", 4), open("object\\u0000")],
        [registering(`/${key}`, 4), reserved(`/${key}`)],
        [registering("/object", 65), invalid],
        [registering("/object", 60, 5), invalid],
        [registering("/object", 0), invalid],
        [registering("/object", "18446744073709551615", "18446744073709551615"), invalid],
        ["{}", missing("key")],
        ['{"key":"/object"}', missing("byte_size")],
        ['{"key":1,"byte_size":4}', cannot("key", "string")],
        [registering("/object", '"4"'), cannot("byte_size", "unsigned-integer")],
        [registering("/object", -4), [400, `${cannot("byte_size", "unsigned-integer")[1]} (-4)`]],
        [registering("/object", 4, "1.5"), [400, `${cannot("offset", "unsigned-integer")[1]} (1.5)`]],
        ["[]", missing("key")],
        ["", [400, "failed to parse the request JSON buffer: The document is empty. at 0"]],
      ]
      for (const [body, [status, error]] of cases) {
        const response = yield* post("/v2/systemsharedmemory/region/r/register", body)
        assert.deepStrictEqual([response.status, response.text], [status, `{"error":"${error}"}`], body)
      }
      const long = yield* post("/v2/systemsharedmemory/region/r/register", registering(`${"/".repeat(2000)}object`, 4))
      assert.strictEqual(long.status, 400)
      assert.include(long.text, "its name has 1 characters and its key 2006, at most 1024 are allowed")
      const nameless = yield* post("/v2/systemsharedmemory/register", registering("/object", 4))
      const necessary = "'region name' is necessary to register system shared memory region"
      assert.deepStrictEqual([nameless.status, nameless.text], [400, JSON.stringify({ error: necessary })])

      assert.strictEqual(
        (yield* post("/v2/systemsharedmemory/region/r/register", registering("object", 64))).status,
        200,
      )
      const repeated = yield* post("/v2/systemsharedmemory/region/r/register", registering("/object", 64))
      const already = "shared memory region 'r' already in manager"
      assert.deepStrictEqual([repeated.status, repeated.text], [400, JSON.stringify({ error: already })])
      const further = yield* post("/v2/systemsharedmemory/region/s/register", registering("/object", 64))
      const limit = "failed to register shared memory region 's': 1 regions are registered, the maximum allowed"
      assert.deepStrictEqual([further.status, further.text], [400, JSON.stringify({ error: limit })])
      for (const path of ["register", "region/r/unregister", "status/"]) {
        assert.include([404, 405], (yield* get(`/v2/systemsharedmemory/${path}`)).status, path)
      }
    }),
  )

  it.live("a system without shared memory reports it", () =>
    Effect.gen(function* () {
      const { post } = yield* harness({ directory: "/nowhere/at/all" })
      const response = yield* post("/v2/systemsharedmemory/region/r/register", registering("/object", 4))
      assert.strictEqual(response.status, 501)
      assert.include(response.text, "which has no /nowhere/at/all")
    }),
  )
})

describe("requests", () => {
  it.live("over HTTP: inputs are read from regions and outputs written into them", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const { post, file } = server
      const parameters = { shared_memory_region: "out", shared_memory_byte_size: 12, shared_memory_offset: 8 }
      const response = yield* post(infer, jsonRequest())
      assert.strictEqual(response.status, 200, response.text)
      assert.deepStrictEqual(JSON.parse(response.text), {
        model_name: "echo",
        model_version: "1",
        outputs: [
          { name: "Y", datatype: "FP32", shape: [3], parameters },
          { name: "TEXT", datatype: "BYTES", shape: [1], data: ["hi"] },
        ],
      })
      assert.deepStrictEqual(readFileSync(file("object")).subarray(40, 52), Buffer.from(floats(1, 2, 3)))
    }),
  )

  it.live("over HTTP: with binary data; outputs in regions have none", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const { post, file } = server
      // As clients write it: not binary, because it is in a region.
      const document = jsonRequest(
        jsonRegion("in", 12, 4),
        jsonRegion("out", 32, undefined, ',"binary_data":false'),
        '"parameters":{"binary_data_size":6}',
      ).replace('{"name":"TEXT"}', '{"name":"TEXT","parameters":{"binary_data":true}}')
      const response = yield* post(infer, Buffer.concat([Buffer.from(document), text("hi")]), {
        "inference-header-content-length": String(document.length),
      })
      assert.strictEqual(response.status, 200)
      const region = '"parameters":{"shared_memory_region":"out","shared_memory_byte_size":12}'
      assert.include(response.text, `{"name":"Y","datatype":"FP32","shape":[3],${region}}`)
      assert.isTrue(response.text.endsWith('"parameters":{"binary_data_size":6}}]}\u0002\0\0\0hi'), response.text)
      assert.deepStrictEqual(readFileSync(file("object")).subarray(32, 44), Buffer.from(floats(1, 2, 3)))
    }),
  )

  it.live("strings in regions", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const request =
        `{"inputs":[{"name":"X","datatype":"FP32","shape":[0],"data":[]},` +
        `{"name":"TEXT","datatype":"BYTES","shape":[1],${jsonRegion("in", 9, 16)}}],` +
        `"outputs":[{"name":"TEXT",${jsonRegion("out", 32)}}]}`
      const response = yield* server.post(infer, request)
      assert.strictEqual(response.status, 200, response.text)
      assert.include(response.text, '"parameters":{"shared_memory_region":"out","shared_memory_byte_size":9}')
      assert.deepStrictEqual(readFileSync(server.file("object")).subarray(32, 41), Buffer.from(text("naive")))
    }),
  )

  for (const [name, client] of Object.entries(clients)) {
    it.live(`over ${name}: inputs are read from regions and outputs written into them`, () =>
      Effect.gen(function* () {
        const server = yield* harness()
        yield* twoRegions(server)
        const call = yield* client(server.grpc)
        const outcome = yield* call(modelInfer, grpcRequest())
        assert("response" in outcome)
        const [y, other] = outcome.response.outputs
        const choices = Object.entries(y?.parameters ?? {}).map(([key, { parameterChoice }]) => [
          key,
          parameterChoice.value,
        ])
        assert.deepStrictEqual(choices.toSorted(), [
          ["shared_memory_byte_size", 12n],
          ["shared_memory_offset", 8n],
          ["shared_memory_region", "out"],
        ])
        assert.deepStrictEqual(other?.parameters, {})
        const raw = outcome.response.rawOutputContents.map((bytes) => new Uint8Array(bytes))
        assert.deepStrictEqual(raw, [new Uint8Array(), text("hi")])
        assert.deepStrictEqual(readFileSync(server.file("object")).subarray(40, 52), Buffer.from(floats(1, 2, 3)))
      }),
    )
  }

  it.live("refuses with the same message over both protocols", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const whole = [12, 4] as const
      const cases: ReadonlyArray<
        readonly [x: readonly [string, number, number], y: readonly [string, number, number], number, number, string]
      > = [
        [["none", ...whole], ["out", 12, 8], 404, 5, "Unable to find shared memory region: 'none'"],
        [["in", ...whole], ["none", 12, 8], 404, 5, "Unable to find shared memory region: 'none'"],
        [["in", 12, 32], ["out", 12, 8], 400, 3, "Invalid offset for shared memory region: 'in'"],
        [["in", 12, 2 ** 60], ["out", 12, 8], 400, 3, "Invalid offset for shared memory region: 'in'"],
        [["in", 12, 21], ["out", 12, 8], 400, 3, "Invalid offset + byte size for shared memory region: 'in'"],
        [["in", ...whole], ["out", 33, 0], 400, 3, "Invalid offset + byte size for shared memory region: 'out'"],
        [
          ["in", 8, 4],
          ["out", 12, 8],
          400,
          3,
          "[request id: <id_unknown>] input byte size mismatch for input 'X' for model 'echo'. Expected 12, got 8",
        ],
        [
          ["in", ...whole],
          ["out", 11, 8],
          400,
          13,
          "shared memory size specified with the request for output 'Y' (11 bytes) should be at least 12 bytes to hold " +
            "the results",
        ],
      ]
      for (const [x, y, status, code, message] of cases) {
        const response = yield* server.post(infer, jsonRequest(jsonRegion(...x), jsonRegion(...y)))
        assert.deepStrictEqual([response.status, response.text], [status, JSON.stringify({ error: message })])
        const bigints = ([name, byteSize, offset]: typeof x) => region(name, BigInt(byteSize), BigInt(offset))
        const outcome = yield* server.call(modelInfer, grpcRequest(bigints(x), bigints(y)))
        assert.deepStrictEqual(failureOf(outcome), [code, message])
      }
    }),
  )

  it.live("an object that has become shorter fails its request only", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      truncateSync(server.file("object"), 32)
      const writing = yield* server.post(infer, jsonRequest())
      assert.strictEqual(writing.status, 400)
      assert.include(
        writing.text,
        "Unable to write output 'Y' to shared memory region: 'out', the object was truncated",
      )
      assert.strictEqual(readFileSync(server.file("object")).length, 32)
      truncateSync(server.file("object"), 8)
      const reading = yield* server.post(infer, jsonRequest())
      assert.strictEqual(reading.status, 400)
      assert.include(reading.text, "Unable to read input 'X' from shared memory region: 'in', the object was truncated")
      truncateSync(server.file("object"), 64)
      assert.strictEqual((yield* server.post(infer, jsonRequest())).status, 200)
    }),
  )

  it.live("a part whose end exceeds 64 bits is refused with its numbers", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const part = (size: string, offset: number) =>
        `"parameters":{"shared_memory_region":"in","shared_memory_byte_size":${size},"shared_memory_offset":${offset}}`
      const asking = (size: string, offset: number) =>
        server.post(
          "/v2/models/gated/infer",
          `{"inputs":[{"name":"X","datatype":"FP32","shape":[3],${part(size, offset)}}]}`,
        )
      const size = "18446744073709551613"
      const overflow =
        `Integer overflow detected: byte_size (${size}) + offset (4) exceeds maximum value (18446744073709551615) ` +
        "for region 'in'"
      const [overflowing, within, outside] = [yield* asking(size, 4), yield* asking(size, 2), yield* asking(size, 32)]
      assert.deepStrictEqual([overflowing.status, overflowing.text], [400, JSON.stringify({ error: overflow })])
      const beyond = "Invalid offset + byte size for shared memory region: 'in'"
      assert.deepStrictEqual([within.status, within.text], [400, JSON.stringify({ error: beyond })])
      const offset = "Invalid offset for shared memory region: 'in'"
      assert.deepStrictEqual([outside.status, outside.text], [400, JSON.stringify({ error: offset })])
    }),
  )

  it.live("an object whose name is gone is still there, as with a mapping of it", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      rmSync(server.file("object"))
      assert.strictEqual((yield* server.post(infer, jsonRequest())).status, 200)
    }),
  )

  it.live("over a stream: each of its results is in the region", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const transport = createGrpcTransport(yield* connection(server.grpc.authority))
      const requests = async function* () {
        yield create(modelInfer.input, grpcRequest())
        yield create(modelInfer.input, grpcRequest(region("none", 12n)))
        yield create(modelInfer.input, {
          modelName: "count",
          inputs: [{ name: "X", datatype: "FP32", shape: [3n], parameters: region("in", 12n, 4n) }],
          outputs: [{ name: "Y", parameters: region("out", 12n) }],
        })
      }
      const results = yield* Effect.promise(async () => {
        const stream = await transport.stream(modelStreamInfer, undefined, undefined, undefined, requests())
        return Array.fromAsync(stream.message)
      })
      const shown = results.map(({ errorMessage, inferResponse }) => [
        errorMessage,
        inferResponse?.outputs[0]?.parameters["shared_memory_byte_size"]?.parameterChoice.value,
      ])
      assert.deepStrictEqual(shown, [
        ["", 12n],
        ["Unable to find shared memory region: 'none'", undefined],
        ["", 12n],
        ["", 12n],
      ])
      assert.deepStrictEqual(readFileSync(server.file("object")).subarray(32, 44), Buffer.from(floats(2, 3, 4)))
    }),
  )

  it.live("a region that is unregistered while a request uses it serves others until that is answered", () =>
    Effect.gen(function* () {
      const server = yield* harness()
      yield* twoRegions(server)
      const request =
        `{"inputs":[{"name":"X","datatype":"FP32","shape":[3],${jsonRegion("in", 12, 4)}}],` +
        `"outputs":[{"name":"Y",${jsonRegion("out", 12)}}]}`
      const running = yield* Effect.forkChild(server.post("/v2/models/gated/infer", request))
      const gate = yield* Queue.take(server.started)
      assert.strictEqual((yield* server.post("/v2/systemsharedmemory/unregister", "")).status, 200)
      const status = () =>
        Effect.map(server.get("/v2/systemsharedmemory/status"), (response) => JSON.parse(response.text))
      assert.strictEqual((yield* status()).length, 2)
      const [during, again] = [
        yield* server.post(infer, jsonRequest()),
        yield* server.post("/v2/systemsharedmemory/region/in/register", registering("/object", 32)),
      ]
      assert.deepStrictEqual([during.status, again.status], [200, 400])
      assert.include(again.text, "shared memory region 'in' already in manager")
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(running)).status, 200)
      assert.deepStrictEqual(readFileSync(server.file("object")).subarray(32, 44), Buffer.from(floats(1, 2, 3)))
      assert.deepStrictEqual(yield* status(), [])
    }),
  )

  it.live("inputs in shared memory are bounded, alone and together", () =>
    Effect.gen(function* () {
      const server = yield* harness({ maxInputSize: 12 })
      yield* twoRegions(server)
      const request = (size: number) =>
        `{"inputs":[{"name":"X","datatype":"FP32","shape":[${size / 4}],${jsonRegion("in", size, 4)}}]}`
      const large = yield* server.post("/v2/models/gated/infer", request(16))
      const tooLarge = "the inputs in shared memory have 16 bytes, at most 12 are allowed at one time"
      assert.deepStrictEqual([large.status, large.text], [400, JSON.stringify({ error: tooLarge })])
      const running = yield* Effect.forkChild(server.post("/v2/models/gated/infer", request(12)))
      const gate = yield* Queue.take(server.started)
      const beside = yield* server.post("/v2/models/gated/infer", request(4))
      const tooMuch = "requests hold 12 bytes of inputs from shared memory, at most 12 are allowed at one time"
      assert.deepStrictEqual([beside.status, beside.text], [503, JSON.stringify({ error: tooMuch })])
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual((yield* Fiber.join(running)).status, 200)
      assert.strictEqual((yield* server.post(infer, jsonRequest())).status, 200)
    }),
  )
})

it.live("CUDA memory: none, as on any server without GPUs", () =>
  Effect.gen(function* () {
    const { get, post, call } = yield* serve([])
    const status = yield* get("/v2/cudasharedmemory/status")
    assert.deepStrictEqual([status.status, status.text], [200, "[]"])
    const body = '{"raw_handle":{"b64":""},"device_id":0,"byte_size":4}'
    const registered = yield* post("/v2/cudasharedmemory/region/r/register", body)
    const error = "failed to register CUDA shared memory region: 'r', GPUs not supported"
    assert.deepStrictEqual([registered.status, registered.text], [400, JSON.stringify({ error })])
    assert.strictEqual((yield* post("/v2/cudasharedmemory/region/r/unregister", "")).status, 200)
    assert.deepStrictEqual(failureOf(yield* call(cudaSharedMemoryRegister, { name: "r" })), [3, error])
    const outcome = yield* call(cudaSharedMemoryStatus, {})
    assert("response" in outcome)
    assert.deepStrictEqual(outcome.response.regions, {})
    assert("response" in (yield* call(cudaSharedMemoryUnregister, {})))
    const unknown = yield* get("/v2/cudasharedmemory/region/r/status")
    assert.deepStrictEqual([unknown.status, unknown.tag], [404, "RegionNotFound"])
  }),
)

it.live("a request whose tensors are traced is answered; those in regions have no data in its trace", () =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "regions-trace-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true })),
    )
    const file = join(folder, "trace")
    yield* Effect.scoped(
      Effect.gen(function* () {
        const settings: Partial<TraceSettings> = { levels: ["TENSORS"], rate: 1, count: -1, logFrequency: 0, file }
        const server = yield* harness({}, settings)
        yield* twoRegions(server)
        assert.strictEqual((yield* server.post(infer, jsonRequest())).status, 200)
        assert("response" in (yield* server.call(modelInfer, grpcRequest())))
      }),
    )
    const elements: ReadonlyArray<{ readonly tensor?: { readonly name: string; readonly data: string } }> = JSON.parse(
      readFileSync(file, "utf8"),
    )
    const tensors = elements.flatMap(({ tensor }) => (tensor === undefined ? [] : `${tensor.name}: ${tensor.data}`))
    const each = ["X: ", "TEXT: hi", "Y: ", "TEXT: hi"]
    assert.deepStrictEqual(tensors, [...each, ...each])
  }),
)
