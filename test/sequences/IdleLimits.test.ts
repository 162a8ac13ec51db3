/** Limits of idle time that callers give their sequences: by Triton's protocols, and in sessions of every client. */
import { expect, it } from "@effect/vitest"
import { Client } from "@nereid/client"
import { Client as BrowserClient } from "@nereid/client/browser"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import { type Scenario, step } from "./Scenario.ts"
import { http, metric, transports } from "./SequenceCalls.ts"
import { configOf, filesOf } from "./SequenceModels.ts"
import { serve, serveFiles } from "./SequenceServer.ts"

const accumulator: Scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: 60_000_000, steps: [], sizes: {} }

/** Callers may choose any limit. */
const unlimited = {
  ...filesOf(accumulator),
  "m/config.pbtxt": `${configOf(accumulator)}
    parameters { key: "max_sequence_idle_limit_microseconds" value { string_value: "unlimited" } }`,
}

class M extends Model.Service<M>()("m", {
  inputs: { INPUT: Tensor.INT32(1) },
  outputs: { OUTPUT: Tensor.INT32(1) },
  maxBatchSize: 4,
  sequence: {},
}) {}

const input = { INPUT: Tensor.make("INT32", [1], Int32Array.of(1)) }

const expired = (ports: { readonly metrics: number }) =>
  Effect.repeat(metric(ports, "nereid_sequences_ended", 'reason="expired"'), { until: (count) => count === 1 })

for (const [transport, send] of transports(4)) {
  it.live(`${transport}: a sequence expires after its own limit, which is beside that of the others`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(accumulator, { server: { drainTimeout: "10 millis" } })
      const sendOne = (...args: Parameters<typeof step>) =>
        Effect.promise(async () => (await send(ports, "m", [step(...args)]))[0])
      expect(yield* sendOne(7n, "S", 1, 1, { maxIdle: 30_000n })).toBe(1)
      expect(yield* sendOne(8n, "S", 1, 1)).toBe(1)
      yield* expired(ports)
      expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)
      expect(yield* sendOne(8n, "E", 1, 2)).toBe(2)
      expect(yield* sendOne(9n, "S", 1, 0, { maxIdle: 60_000_001n })).toBe(
        "[request id: <id_unknown>] parameter 'sequence_max_idle' must be at most 60000000 microseconds for model 'm', but 60000001 was given. " +
          "Give less, or raise 'max_sequence_idle_limit_microseconds' (in code 'maxIdleLimit')",
      )
    }),
  )
}

it.live("a value that is not a number of microseconds is refused", () =>
  Effect.gen(function* () {
    const ports = yield* serve(accumulator)
    for (const value of [0, -1, 1.5, "1 second", true]) {
      const body = {
        parameters: { sequence_id: 7, sequence_start: true, sequence_max_idle: value },
        inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }],
      }
      const { status, text } = yield* http(ports, "/v2/models/m/infer", JSON.stringify(body))
      expect(status).toBe(400)
      expect(text).toContain(`'sequence_max_idle' must be an integer of at least 1, in microseconds, but ${value}`)
    }
  }),
)

const clients = {
  gRPC: ({ grpc }) => Client.connect(M, { url: `grpc://127.0.0.1:${grpc}` }),
  HTTP: ({ http }) => Client.connect(M, { url: `http://127.0.0.1:${http}` }),
  "the client for browsers": ({ http }) => BrowserClient.connect(M, { url: `http://127.0.0.1:${http}` }),
} satisfies { readonly [name: string]: (ports: { readonly http: number; readonly grpc: number }) => unknown }

it.live.each(Object.entries(clients))("%s: a session has its own limit", ([, connect]) =>
  Effect.gen(function* () {
    const ports = yield* serveFiles(unlimited, { server: { drainTimeout: "10 millis" } })
    const model = yield* Effect.acquireRelease(
      Effect.promise(() => connect(ports)),
      (model) => Effect.promise(() => model.close()),
    )
    const [brief, endless] = [model.session({ maxIdle: "40 millis" }), model.session({ maxIdle: Infinity })]
    yield* Effect.promise(() => Promise.all([brief.infer(input), endless.infer(input)]))
    yield* expired(ports)
    const lost = yield* Effect.promise(() => brief.infer(input).catch((error: unknown) => error))
    expect(lost).toMatchObject({ _tag: "SequenceNotFound", reason: "expired", idleMillis: 40 })
    const { OUTPUT } = yield* Effect.promise(() => endless.infer(input))
    expect([...OUTPUT.data]).toEqual([2])
    yield* Effect.promise(() => endless.close())
    expect(() => model.session({ maxIdle: "0 seconds" })).toThrow("maxIdle of a session must be longer than 0")
  }),
)
