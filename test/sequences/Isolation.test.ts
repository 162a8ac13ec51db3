/**
 * Callers and models that try to read the state of another sequence: ONNX files, scripts and handlers in code, over
 * each transport. A secret is in the state of one sequence, and nobody else may see it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Context, Effect, Layer } from "effect"
import * as sequences from "../fixtures/sequences.ts"
import { type Flags, notStarted, step } from "./Scenario.ts"
import { http, type ObservedPorts, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

const secret = 777_777

/** Fills the state that it gets, after it has used it: the next sequence must not have it. */
const spoiling = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  export default ModelScript.define({
    execute: (requests) => requests.map(({ inputs: { INPUT, INPUT_STATE } }) => {
      const sum = INPUT.data[0] + INPUT_STATE.data[0]
      INPUT_STATE.data.fill(${secret})
      const tensor = Tensor.make("INT32", INPUT.shape, Int32Array.of(sum))
      return { OUTPUT: tensor, OUTPUT_STATE: Tensor.make("INT32", INPUT.shape, Int32Array.of(sum)) }
    }),
  })`

class Sums extends Model.Service<Sums>()("m", {
  inputs: { INPUT: Tensor.scalar("INT32") },
  outputs: { OUTPUT: Tensor.scalar("INT32") },
  maxBatchSize: 4,
  sequence: { state: { SUM: Tensor.INT32(1) } },
}) {}

const one = (sum: number) => Tensor.make("INT32", [1], Int32Array.of(sum))

const EachLive = Model.sequence(Sums, ({ INPUT }, { state: { SUM } }) => {
  const sum = INPUT + (SUM.data[0] ?? 0)
  SUM.data.fill(secret)
  return { outputs: { OUTPUT: sum }, state: { SUM: one(sum) } }
})

const BatchLive = Model.sequenceBatch(Sums, ({ INPUT }, { state: { SUM } }) => {
  const sums = INPUT.data.map((value, row) => value + (SUM.data[row] ?? 0))
  SUM.data.fill(secret)
  const state = Tensor.make("INT32", SUM.shape, sums)
  return { outputs: { OUTPUT: Tensor.make("INT32", INPUT.shape, sums.slice()) }, state: { SUM: state } }
})

const free = { host: "127.0.0.1", port: 0 }

const inCode = (live: typeof EachLive) =>
  Effect.gen(function* () {
    const options = { http: free, grpc: free, metrics: free, drainTimeout: "10 millis" } as const
    const layer = Server.layer([Sums], options).pipe(Layer.provide(live))
    const { http, grpc, metrics } = Context.get(yield* Layer.build(layer), Server.Server)
    return { http: http?.port ?? 0, grpc: grpc?.port ?? 0, metrics: metrics?.port ?? 0 }
  })

const stored = (strategy: string, model: Readonly<Record<string, string | Uint8Array>>) => {
  const config = sequences.config(`${strategy} ${sequences.state()}`, { idle: 60_000_000 })
  return serveFiles({ "m/config.pbtxt": config, ...model }, { server: { drainTimeout: "10 millis" } })
}

const onnx = { "m/1/model.onnx": sequences.accumulator(true) }
const script = { "m/1/model.ts": spoiling }

const servers = {
  "ONNX, direct": stored("direct {}", onnx),
  "ONNX, oldest": stored("oldest {}", onnx),
  "a script, direct": stored("direct {}", script),
  "a script, oldest": stored("oldest {}", script),
  "a handler of one sample": inCode(EachLive),
  "a handler of batches": inCode(BatchLive),
}

const refusedInput = (ports: ObservedPorts, name: string, model = "m") =>
  Effect.map(
    http(
      ports,
      `/v2/models/${model}/infer`,
      JSON.stringify({
        parameters: { sequence_id: 9, sequence_start: true },
        inputs: ["INPUT", name].map((name) => ({ name, shape: [1, 1], datatype: "INT32", data: [1] })),
      }),
    ),
    ({ status }) => status,
  )

const refusedOutput = (ports: ObservedPorts, name: string) =>
  Effect.map(
    http(
      ports,
      "/v2/models/m/infer",
      JSON.stringify({
        parameters: { sequence_id: 9, sequence_start: true },
        inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }],
        outputs: [{ name }],
      }),
    ),
    ({ status }) => status,
  )

describe.each(Object.entries(servers))("%s", (name, serve) => {
  for (const [transport, send] of transports(4)) {
    // L2.isolated@all
    it.live(`${transport}: no request sees the state of another sequence`, () =>
      Effect.gen(function* () {
        const ports = yield* serve
        const call = (id: bigint | string, flags: Flags, input: number) =>
          Effect.promise(async () => (await send(ports, "m", [step(id, flags, input, 0)]))[0])
        const together = (calls: ReadonlyArray<readonly [id: bigint, flags: Flags, input: number]>) =>
          Effect.all(
            calls.map((one) => call(...one)),
            { concurrency: "unbounded" },
          )
        expect(yield* call(1n, "S", secret)).toBe(secret)
        // Ids that differ in their kind, their low half or their sign, and one that is not live.
        for (const id of ["1", 2n ** 32n + 1n, 2n ** 64n - 1n, 2n]) {
          expect(yield* call(id, "", 0)).toBe(notStarted(String(id)))
          expect(yield* call(id, "SE", 1)).toBe(1)
        }
        // Rows beside it, whichever have the batch.
        for (let round = 0; round < 5; round++) {
          const sums = yield* together([
            [1n, "", 0],
            [3n, round === 0 ? "S" : "", 1],
            [4n, "SE", 5],
          ])
          expect(sums).toEqual([secret, round + 1, 5])
        }
        // The slot, the row and the memory of a sequence that has ended; and its own id.
        expect(yield* call(1n, "E", 0)).toBe(secret)
        expect(yield* call(1n, "", 0)).toBe(notStarted("1"))
        for (const id of [5n, 1n]) {
          expect(yield* call(id, "S", 0)).toBe(0)
          expect(yield* call(id, "E", 0)).toBe(0)
        }
        // START of a live sequence leaves nothing of the run before.
        expect(yield* call(6n, "S", secret)).toBe(secret)
        expect(yield* call(6n, "S", 0)).toBe(0)
        expect(yield* call(6n, "E", 2)).toBe(2)
        expect(yield* call(3n, "E", 0)).toBe(5)
      }),
    )
  }

  // L2.not-output@HTTP
  it.live("a request cannot bring a state, or get one that is no output", () =>
    Effect.gen(function* () {
      const ports = yield* serve
      const [input, output] = name.startsWith("a handler") ? ["SUM", "SUM"] : ["INPUT_STATE", "OUTPUT_STATE"]
      expect([yield* refusedInput(ports, input), yield* refusedOutput(ports, output)]).toEqual([400, 400])
    }),
  )
})
