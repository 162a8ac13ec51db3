/** The log of a server: settings over both ports, and their effect on the lines and their destination (C39). */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, References, type Scope } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { clients, rawCall, rawSession } from "../grpc/GrpcServer.fixture.ts"
import * as Logging from "./Logging.ts"
import * as Server from "../Server.ts"

const { logSettings, serverLive, modelInfer } = GRPCInferenceService.method

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const echo = Model.each(Echo, ({ X }) =>
  Effect.as(X < 0 ? Effect.logWarning("a negative sample") : Effect.logInfo("a sample"), { X }),
)

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "nereid-log-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true })),
)

const free = { host: "127.0.0.1", port: 0 }

const ports = Effect.gen(function* () {
  const { http, grpc } = yield* Server.Server
  assert(http !== undefined && grpc !== undefined)
  const authority = `http://127.0.0.1:${grpc.port}`
  const call = yield* clients["grpc-js"]({ port: grpc.port })
  const fetchPath = (path: string, body?: string) =>
    Effect.promise(async () => {
      const init = body === undefined ? {} : { method: "POST", body }
      const response = await fetch(`http://127.0.0.1:${http.port}${path}`, {
        ...init,
        headers: { connection: "close" },
      })
      return { status: response.status, text: await response.text() }
    })
  return { infer: fetchPath, call, authority }
})

const serve = Effect.fnUntraced(function* (logging: Logging.LoggingOptions = {}, fastInference = true) {
  const layer = Server.layer([Echo], { http: free, grpc: free, metrics: false, logging, fastInference })
  return yield* Effect.provideContext(ports, yield* Layer.build(Layer.provide(layer, echo)))
})

const defaults = {
  log_file: "",
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: "default",
}

describe("settings", () => {
  it.live("are read and changed one by one over HTTP, and the response has all of them", () =>
    Effect.gen(function* () {
      const { infer: call } = yield* serve()
      expect(yield* call("/v2/logging")).toEqual({ status: 200, text: JSON.stringify(defaults) })
      let expected: object = defaults
      for (const change of [
        { log_info: false },
        { log_warning: false, log_error: false },
        { log_verbose_level: 4294967295 },
        { log_format: "ISO8601" },
        { log_format: null, log_info: true, log_file: null },
        {},
      ]) {
        expected = { ...expected, ...Object.fromEntries(Object.entries(change).filter(([, value]) => value !== null)) }
        expect(yield* call("/v2/logging", JSON.stringify(change))).toEqual({
          status: 200,
          text: JSON.stringify(expected),
        })
      }
      expect(yield* call("/v2/logging")).toEqual({ status: 200, text: JSON.stringify(expected) })
    }),
  )

  it.live("are read and changed over gRPC, and shared with HTTP", () =>
    Effect.gen(function* () {
      const { infer: send, call } = yield* serve({ info: false })
      const response = yield* call(logSettings, {
        settings: {
          log_error: { parameterChoice: { case: "boolParam", value: false } },
          log_verbose_level: { parameterChoice: { case: "uint32Param", value: 2 } },
          log_format: { parameterChoice: { case: "stringParam", value: "ISO8601" } },
          log_file: {},
        },
      })
      assert("response" in response)
      expect(
        Object.entries(response.response.settings).map(([name, { parameterChoice }]) => [name, parameterChoice]),
      ).toEqual([
        ["log_file", { case: "stringParam", value: "" }],
        ["log_info", { case: "boolParam", value: false }],
        ["log_warning", { case: "boolParam", value: true }],
        ["log_error", { case: "boolParam", value: false }],
        ["log_verbose_level", { case: "uint32Param", value: 2 }],
        ["log_format", { case: "stringParam", value: "ISO8601" }],
      ])
      const expected = { ...defaults, log_info: false, log_error: false, log_verbose_level: 2, log_format: "ISO8601" }
      expect(JSON.parse((yield* send("/v2/logging")).text)).toEqual(expected)
    }),
  )

  const unparsed = (name: string, expected: string) =>
    `Unable to parse '${name}': attempt to access JSON non-${expected} as ${expected}`
  const unknown =
    "unknown log setting 'log_x', expected one of: log_file, log_info, log_warning, log_error, log_verbose_level, log_format"
  const format = "Unable to parse 'log_format', expected 'default' or 'ISO8601', got: x"

  it.live.each<readonly [string, number, string]>([
    ['{"log_file":"x"}', 501, "log file location can not be updated through network protocol"],
    ['{"log_info":1}', 400, unparsed("log_info", "boolean")],
    ['{"log_warning":"true"}', 400, unparsed("log_warning", "boolean")],
    ['{"log_error":[]}', 400, unparsed("log_error", "boolean")],
    ['{"log_verbose_level":-1}', 400, unparsed("log_verbose_level", "unsigned-integer")],
    ['{"log_verbose_level":1.5}', 400, unparsed("log_verbose_level", "unsigned-integer")],
    ['{"log_verbose_level":4294967296}', 400, unparsed("log_verbose_level", "unsigned-integer")],
    ['{"log_verbose_level":true}', 400, unparsed("log_verbose_level", "unsigned-integer")],
    ['{"log_format":1}', 400, unparsed("log_format", "string")],
    ['{"log_format":"x"}', 400, format],
    ['{"log_info":false,"log_x":1}', 400, unknown],
    ["[]", 400, "attempt to access JSON non-object as object"],
  ])("HTTP refuses %s and changes nothing", ([body, status, error]) =>
    Effect.gen(function* () {
      const { infer: call } = yield* serve()
      expect(yield* call("/v2/logging", body)).toEqual({ status, text: JSON.stringify({ error }) })
      expect((yield* call("/v2/logging")).text).toBe(JSON.stringify(defaults))
    }),
  )

  const bool = { parameterChoice: { case: "boolParam", value: true } } as const
  const string = { parameterChoice: { case: "stringParam", value: "x" } } as const

  it.live("gRPC refuses with the same texts, types in its own words", () =>
    Effect.gen(function* () {
      const { call } = yield* serve()
      const invalid = { code: 3, tag: "InvalidRequest" }
      for (const [settings, expected] of [
        [{ log_file: string }, { code: 12, tag: "Unsupported", message: /^log file location can not be updated/ }],
        [
          { log_info: string },
          { ...invalid, message: "invalid value type for 'log_info' setting, expected bool_param." },
        ],
        [{ log_verbose_level: bool }, { ...invalid, message: /'log_verbose_level' setting, expected uint32_param\.$/ }],
        [{ log_format: bool }, { ...invalid, message: /'log_format' setting, expected string_param\.$/ }],
        [{ log_format: string }, { ...invalid, message: format }],
        [{ log_x: bool }, { ...invalid, message: unknown }],
      ] as const) {
        const response = yield* call(logSettings, { settings })
        const { message, ...rest } = expected
        expect(response).toMatchObject(rest)
        assert("message" in response)
        if (typeof message === "string") expect(response.message).toBe(message)
        else expect(response.message).toMatch(message)
      }
    }),
  )
})

/** Returns the log file that a program has written by its end. */
const logged = Effect.fnUntraced(function* <E>(
  program: (file: string) => Effect.Effect<void, E, Scope.Scope>,
  before = "",
) {
  const file = join(yield* folder, "log")
  if (before !== "") yield* Effect.promise(() => writeFile(file, before))
  yield* Effect.scoped(program(file))
  return (yield* Effect.promise(() => readFile(file, "utf8"))).split("\n").slice(0, -1)
})

const infer = (value: number) =>
  JSON.stringify({ id: "a\nb", inputs: [{ name: "X", datatype: "INT32", shape: [1], data: [value] }] })

const path = "/v2/models/echo/infer"

describe("the log", () => {
  it.live("of a program inside Logging.layer is that of its models too, at the levels that are on", () =>
    Effect.gen(function* () {
      const lines = yield* logged(
        (file) =>
          Effect.gen(function* () {
            const served = Server.layer([Echo], { http: free, grpc: free, metrics: false }).pipe(Layer.provide(echo))
            const context = yield* Layer.build(served.pipe(Layer.provideMerge(Logging.layer({ file }))))
            const { infer: call } = yield* Effect.provideContext(ports, context)
            yield* call(path, infer(1))
            yield* call("/v2/logging", '{"log_info":false,"log_format":"ISO8601"}')
            yield* call(path, infer(1))
            yield* call(path, infer(-1))
            yield* call("/v2/logging", '{"log_warning":false}')
            yield* call(path, infer(-1))
          }),
        "what was there\n",
      )
      expect(lines.map((line) => line.replaceAll(/[0-9]+/g, "0"))).toEqual([
        "what was there",
        'I0 0:0:0.0 0 fiber:0] "a sample"',
        '0-0-0T0:0:0Z W 0 fiber:0] "a negative sample"',
      ])
    }),
  )

  it.live.each([true, false])(
    "has a line for each request while it is verbose (own path for unary calls: %s)",
    (fast) =>
      Effect.gen(function* () {
        const lines = yield* logged((file) =>
          Effect.gen(function* () {
            const { infer: send, call, authority } = yield* serve({ file }, fast)
            yield* send(path, infer(1))
            yield* send("/v2/logging", '{"log_verbose_level":1}')
            yield* send(path, infer(1))
            yield* send("/v2/models/none", undefined)
            yield* send("/v2/nothing", undefined)
            yield* call(serverLive, {})
            yield* call(modelInfer, { modelName: "echo", id: "7" })
            const input = { name: "X", datatype: "INT32", shape: [1n], contents: { intContents: [1] } }
            yield* call(modelInfer, { modelName: "echo", inputs: [input] })
            const session = yield* rawSession({ authority })
            const stream = { ":path": "/inference.GRPCInferenceService/ModelStreamInfer" }
            yield* rawCall(session, { chunks: [], headers: stream })
            yield* call(logSettings, {
              settings: { log_verbose_level: { parameterChoice: { case: "uint32Param", value: 0 } } },
            })
            yield* send(path, infer(1))
          }),
        )
        const texts = lines.map((line) => line.slice(line.indexOf("] ") + 2).replace(/[0-9.]+ ms/, "N ms"))
        const infers = "inference.GRPCInferenceService/ModelInfer"
        expect(texts.toSorted()).toEqual(
          [
            String.raw`"POST /v2/models/echo/infer: 200, N ms, model 'echo', id 'a\nb'"`,
            '"GET /v2/models/none: 404, N ms"',
            '"GET /v2/nothing: 404, N ms"',
            '"inference.GRPCInferenceService/ServerLive: OK, N ms"',
            `"${infers}: INVALID_ARGUMENT, N ms, model 'echo', id '7'"`,
            `"${infers}: OK, N ms, model 'echo'"`,
            '"inference.GRPCInferenceService/ModelStreamInfer: OK, N ms"',
          ].toSorted(),
        )
      }),
  )

  it.live("as JSON has the model and the request of what a handler logs, and of calls", () =>
    Effect.gen(function* () {
      const lines = yield* logged((file) =>
        Effect.gen(function* () {
          const served = Server.layer([Echo], { http: free, grpc: free, metrics: false }).pipe(Layer.provide(echo))
          const context = yield* Layer.build(
            served.pipe(Layer.provideMerge(Logging.layer({ file, format: "json", verboseLevel: 1 }))),
          )
          const { infer: call } = yield* Effect.provideContext(ports, context)
          yield* call(path, infer(1))
          yield* call("/v2/logging", '{"log_format":"default"}')
          yield* call("/v2/logging", '{"log_format":"json","log_verbose_level":0}')
          yield* call(path, infer(-1))
        }),
      )
      const objects = lines.flatMap((line): ReadonlyArray<unknown> => (line.startsWith("{") ? [JSON.parse(line)] : []))
      const ofRequest = { model: "echo", request_id: "a\nb" }
      const operation = "POST /v2/models/echo/infer"
      expect(objects[0]).toMatchObject({ level: "INFO", message: "a sample", ...ofRequest })
      expect(objects[1]).toMatchObject({ level: "DEBUG", operation, status: "200", model: "echo" })
      expect(objects.at(-1)).toMatchObject({ level: "WARN", message: "a negative sample", ...ofRequest })
      expect(lines.some((line) => line.startsWith("I"))).toBe(true)
    }),
  )

  it.live("of a program with custom loggers goes to them, with the same settings", () =>
    Effect.gen(function* () {
      const messages: Array<unknown> = []
      const own = Logger.make(({ message, logLevel }) => {
        messages.push([logLevel, message])
      })
      const served = Logging.current({ warning: false, verboseLevel: 1 }).pipe(
        Effect.flatMap((logging) =>
          Logging.through(logging)(
            Effect.all([Effect.logInfo("info"), Effect.logWarning("warning"), Effect.logDebug("verbose")]),
          ),
        ),
        Effect.andThen(Effect.logWarning("outside")),
        Effect.provide(Logger.layer([own])),
      )
      yield* served
      yield* Effect.provideService(served, References.MinimumLogLevel, "Error")
      expect(messages).toEqual([
        ["Info", ["info"]],
        ["Debug", ["verbose"]],
        ["Warn", ["outside"]],
        ["Debug", ["verbose"]],
      ])
    }),
  )

  it.live("that cannot be written fails the start", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "missing", "log")
      const error = yield* Effect.flip(serve({ file }))
      expect(error._tag).toBe("ServeError")
      expect(error.message).toContain(`cannot write the log file ${file}`)
    }),
  )
})
