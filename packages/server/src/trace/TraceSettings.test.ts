/** Trace settings over both ports: values, changes, and refused changes (C39). */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import * as Tracing from "./Tracing.ts"
import { serve } from "../TwoPorts.fixture.ts"

const { traceSetting } = GRPCInferenceService.method

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
}) {}

const harness = Effect.gen(function* () {
  const context = yield* Layer.build(Model.each(Echo, ({ X }) => Effect.succeed({ X })))
  const { model } = yield* Effect.provideContext(Echo, context)
  const tracing = yield* Tracing.make(ModelStore.of([model]), { rate: 10 }, { id: "nereid", version: "0" })
  return yield* serve([model], { tracing })
})

const initial = {
  trace_level: ["OFF"],
  trace_rate: "10",
  trace_count: "-1",
  log_frequency: "0",
  trace_file: "",
  trace_mode: "triton",
}

const ofAll = "/v2/trace/setting"
const ofEcho = "/v2/models/echo/trace/setting"

describe("HTTP", () => {
  it.live("reads them, for all models and for one", () =>
    Effect.gen(function* () {
      const { get } = yield* harness
      for (const path of [ofAll, ofEcho]) {
        expect(yield* get(path)).toMatchObject({ status: 200, text: JSON.stringify(initial) })
      }
    }),
  )

  it.live(
    "a model's own settings go before those of all; null and an empty list fall back, to those at the start in the end",
    () =>
      Effect.gen(function* () {
        const { get, post } = yield* harness
        const change = (path: string, changes: object) => post(path, JSON.stringify(changes))
        const settings = (path: string) => Effect.map(get(path), ({ text }): unknown => JSON.parse(text))

        const all = { trace_level: ["TENSORS", "TIMESTAMPS"], trace_rate: "2" }
        const expected = { ...initial, trace_level: ["TIMESTAMPS", "TENSORS"], trace_rate: "2" }
        expect(yield* change(ofAll, all)).toMatchObject({ status: 200, text: JSON.stringify(expected) })
        expect(yield* settings(ofEcho)).toEqual(expected)

        const own = { ...expected, trace_level: ["OFF"], trace_count: "7", log_frequency: "3" }
        const ownChange = { trace_level: ["OFF"], trace_count: "7", log_frequency: "3" }
        expect(yield* change(ofEcho, ownChange)).toMatchObject({ text: JSON.stringify(own) })
        expect(yield* settings(ofAll)).toEqual(expected)

        yield* change(ofAll, { trace_rate: "5", trace_count: "9" })
        expect(yield* settings(ofEcho)).toEqual({ ...own, trace_rate: "5" })
        yield* change(ofEcho, { trace_level: [], trace_count: null, log_frequency: null, trace_x: null })
        expect(yield* settings(ofEcho)).toEqual({ ...expected, trace_rate: "5", trace_count: "9" })
        yield* change(ofAll, { trace_level: null, trace_rate: null, trace_count: null })
        expect(yield* settings(ofEcho)).toEqual(initial)
      }),
  )

  const unparsed = (name: string, expected: string) =>
    `Unable to parse '${name}': attempt to access JSON non-${expected} as ${expected}`

  it.live.each<readonly [string, number, string]>([
    ['{"trace_file":"x"}', 501, "trace file location can not be updated through network protocol"],
    ['{"trace_file":null}', 501, "trace file location can not be updated through network protocol"],
    ['{"trace_level":["x"]}', 400, "Unable to parse 'trace_level', got: x"],
    ['{"trace_level":["OFF","TENSORS"]}', 400, "Expect only one trace level 'OFF' is specified"],
    ['{"trace_level":"TIMESTAMPS"}', 400, unparsed("trace_level", "array")],
    ['{"trace_rate":"x"}', 400, "Unable to parse 'trace_rate', got: x"],
    ['{"trace_rate":""}', 400, "Unable to parse 'trace_rate', got: "],
    ['{"trace_rate":"1.5"}', 400, "Unable to parse 'trace_rate', got: 1.5"],
    ['{"trace_rate":"-1"}', 400, "Unable to parse 'trace_rate', value is out of range [ 0, 4294967295 ], got: -1"],
    ['{"trace_rate":1}', 400, unparsed("trace_rate", "string")],
    ['{"trace_rate":["1"]}', 400, unparsed("trace_rate", "string")],
    ['{"trace_count":"-2"}', 400, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"],
    [
      '{"trace_count":"-2147483649"}',
      400,
      "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: -2147483649",
    ],
    ['{"trace_count":"-2","trace_rate":"x"}', 400, "Unable to parse 'trace_rate', got: x"],
    ['{"trace_rate":"3","trace_x":"1","trace_count":"x"}', 400, "Unable to parse 'trace_count', got: x"],
    [
      '{"log_frequency":"4294967296"}',
      400,
      "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: 4294967296",
    ],
  ])("refuses %s and changes nothing", ([body, status, error]) =>
    Effect.gen(function* () {
      const { get, post } = yield* harness
      for (const path of [ofAll, ofEcho]) {
        expect(yield* post(path, body)).toMatchObject({ status, text: JSON.stringify({ error }) })
        expect(yield* get(path)).toMatchObject({ text: JSON.stringify(initial) })
      }
    }),
  )
})

describe("gRPC", () => {
  it.live("reads and changes the same settings; a setting without a value falls back", () =>
    Effect.gen(function* () {
      const { get, call } = yield* harness
      const responded = (settings: object) => ({
        response: {
          settings: Object.fromEntries(
            Object.entries(settings).map(([name, value]) => [
              name,
              { value: typeof value === "string" ? [value] : value },
            ]),
          ),
        },
      })
      expect(yield* call(traceSetting, {})).toMatchObject(responded(initial))
      const changed = { ...initial, trace_level: ["TIMESTAMPS"], trace_rate: "3" }
      const change = { trace_level: { value: ["TIMESTAMPS"] }, trace_rate: { value: ["3"] } }
      expect(yield* call(traceSetting, { modelName: "echo", settings: change })).toMatchObject(responded(changed))
      expect((yield* get(ofEcho)).text).toBe(JSON.stringify(changed))
      expect((yield* get(ofAll)).text).toBe(JSON.stringify(initial))
      const cleared = { trace_level: {}, trace_rate: { value: [] } }
      expect(yield* call(traceSetting, { modelName: "echo", settings: cleared })).toMatchObject(responded(initial))
    }),
  )

  it.live.each<readonly [string, ReadonlyArray<string>, number, string]>([
    ["trace_file", ["x"], 12, "trace file location can not be updated through network protocol"],
    ["trace_level", ["x"], 3, "Unable to parse 'trace_level', got: x"],
    ["trace_count", ["x"], 3, "Unable to parse 'trace_count', got: x"],
    ["trace_rate", ["1", "2"], 3, "expect only 1 value for 'trace_rate'"],
    ["trace_count", ["-2"], 3, "Unable to parse 'trace_count'. Expecting value >= -1, got: -2"],
  ])("refuses %s", ([name, value, code, message]) =>
    Effect.gen(function* () {
      const { call } = yield* harness
      expect(yield* call(traceSetting, { settings: { [name]: { value: [...value] } } })).toMatchObject({
        code,
        message,
      })
    }),
  )
})

it.live("ignores settings that it does not know, as Triton does", () =>
  Effect.gen(function* () {
    const { post, call } = yield* harness
    const changed = { ...initial, trace_rate: "3" }
    const body = '{"trace_x":1,"trace_mode":"opentelemetry","trace_rate":"3"}'
    expect(yield* post(ofEcho, body)).toMatchObject({ status: 200, text: JSON.stringify(changed) })
    const settings = { trace_x: { value: ["1", "2"] }, trace_mode: { value: ["x"] }, trace_rate: { value: ["4"] } }
    expect(yield* call(traceSetting, { modelName: "echo", settings })).toMatchObject({
      response: { settings: { trace_rate: { value: ["4"] }, trace_mode: { value: ["triton"] } } },
    })
  }),
)

it.live("an unknown model has none, whatever the settings", () =>
  Effect.gen(function* () {
    const { get, post, call } = yield* harness
    const message = "Request for unknown model : none"
    const refused = { status: 400, tag: "InvalidRequest", text: JSON.stringify({ error: message }) }
    expect(yield* get("/v2/models/none/trace/setting")).toEqual(refused)
    for (const body of ['{"trace_rate":"1"}', '{"trace_rate":"x"}', "{", ""]) {
      expect(yield* post("/v2/models/none/trace/setting", body)).toEqual(refused)
    }
    const invalid = { modelName: "none", settings: { trace_count: { value: ["-2"] } } }
    for (const request of [{ modelName: "none" }, invalid]) {
      expect(yield* call(traceSetting, request)).toMatchObject({ code: 3, message })
    }
  }),
)
