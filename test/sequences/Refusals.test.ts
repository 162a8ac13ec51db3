/** Parameters of a sequence that are wrong, and requests that no sequence takes: texts, statuses and counts. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { Client, credentials } from "@grpc/grpc-js"
import { describe, expect, it } from "@effect/vitest"
import { type InferParameterSchema, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { Effect } from "effect"
import * as sequences from "../fixtures/sequences.ts"
import { notStarted, step } from "./Scenario.ts"
import { http, metric, type ObservedPorts, type Ports, transports } from "./SequenceCalls.ts"
import { serve, serveFiles } from "./SequenceServer.ts"

type Choice = NonNullable<MessageInitShape<typeof InferParameterSchema>["parameterChoice"]>

const overHttp = (ports: Ports, parameters: string, rows = 1) =>
  Effect.map(
    http(
      ports,
      "/v2/models/m/infer",
      `{"parameters":${parameters},"inputs":[{"name":"INPUT","shape":[${rows},1],"datatype":"INT32","data":[${Array(rows).fill(1).join()}]}]}`,
    ),
    ({ status, text }) => [status, JSON.parse(text).error] as const,
  )

const overGrpc = ({ grpc }: Ports, parameters: Readonly<Record<string, Choice>>) =>
  Effect.callback<readonly [number, string]>((resume) => {
    const client = new Client(`127.0.0.1:${grpc}`, credentials.createInsecure())
    const request = create(ModelInferRequestSchema, {
      modelName: "m",
      parameters: Object.fromEntries(
        Object.entries(parameters).map(([name, parameterChoice]) => [name, { parameterChoice }]),
      ),
      inputs: [{ name: "INPUT", datatype: "INT32", shape: [1n, 1n] }],
      rawInputContents: [new Uint8Array(4)],
    })
    client.makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelInfer",
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      toBinary(ModelInferRequestSchema, request),
      (error) => {
        client.close()
        resume(Effect.succeed([error?.code ?? 0, error?.details ?? ""]))
      },
    )
  })

const scenario = { name: "m", behaviour: "ids", maxBatchSize: 2, steps: [], sizes: {} } as const

const failures = (ports: ObservedPorts) =>
  Effect.forEach(["REJECTED", "CANCELED", "BACKEND", "OTHER"], (reason) =>
    metric(ports, "nv_inference_request_failure", `reason="${reason}"`),
  )

const noId = "inference request to model 'm' must specify a non-zero or non-empty correlation ID"

const unparsed = (name: string, type: string) =>
  `Unable to parse '${name}': attempt to access JSON non-${type} as ${type}`

const wrongType = (name: string, types: string) => `invalid value type for '${name}' parameter, expected ${types}.`

it.live("HTTP: ids and flags have JSON's types (L1.3.http-id-wrong@HTTP, L1.3.flag-wrong@HTTP)", () =>
  Effect.gen(function* () {
    const ports = yield* serve(scenario)
    for (const id of ["-1", "1.5", "true"]) {
      expect(yield* overHttp(ports, `{"sequence_id":${id}}`)).toEqual([400, unparsed("sequence_id", "string")])
    }
    for (const flag of ["sequence_start", "sequence_end"]) {
      const answer = yield* overHttp(ports, `{"sequence_id":1,"${flag}":1}`)
      expect(answer).toEqual([400, unparsed(flag, "boolean")])
    }
  }),
)

it.live("gRPC: ids and flags have the types of parameters (L1.3.grpc-id-wrong@gRPC, L1.3.flag-wrong@gRPC)", () =>
  Effect.gen(function* () {
    const ports = yield* serve(scenario)
    const ids: ReadonlyArray<Choice> = [
      { case: "uint64Param", value: 1n },
      { case: "boolParam", value: true },
      { case: "doubleParam", value: 1 },
    ]
    for (const id of ids) {
      const expected = [3, wrongType("sequence_id", "int64_param or string_param")]
      expect(yield* overGrpc(ports, { sequence_id: id })).toEqual(expected)
    }
    for (const flag of ["sequence_start", "sequence_end"]) {
      const one: Choice = { case: "int64Param", value: 1n }
      const expected = [3, wrongType(flag, "bool_param")]
      expect(yield* overGrpc(ports, { sequence_id: one, [flag]: one })).toEqual(expected)
    }
  }),
)

it.live("the status of a refusal is 400 or INVALID_ARGUMENT (L1.4.status@both)", () =>
  Effect.gen(function* () {
    const ports = yield* serve(scenario)
    const int = (value: bigint): Choice => ({ case: "int64Param", value })
    expect(yield* overHttp(ports, "{}")).toEqual([400, noId])
    expect(yield* overHttp(ports, '{"sequence_id":7}')).toEqual([400, notStarted("7")])
    expect(yield* overGrpc(ports, {})).toEqual([3, noId])
    expect(yield* overGrpc(ports, { sequence_id: int(7n) })).toEqual([3, notStarted("7")])
  }),
)

it.live("generate takes the parameters of a sequence, which Triton ignores (L1.3.generate@HTTP)", () =>
  Effect.gen(function* () {
    const ports = yield* serve(scenario)
    const body = JSON.stringify({ INPUT: 1, sequence_id: 5, sequence_start: true, sequence_end: true })
    const { status, text } = yield* http(ports, "/v2/models/m/generate", body)
    expect([status, JSON.parse(text).OUTPUT]).toEqual([200, 1 + 1 + 5])
    const without = yield* http(ports, "/v2/models/m/generate", JSON.stringify({ INPUT: 1 }))
    expect([without.status, JSON.parse(without.text).error]).toEqual([400, noId])
  }),
)

describe("a request with several problems has the first one", () => {
  for (const [transport, send] of transports(2)) {
    // L1.4.rows@all, L1.3.id-length@all, L1.4.not-counted@all
    it.live(transport, () =>
      Effect.gen(function* () {
        const ports = yield* serve(scenario)
        const one = (...args: Parameters<typeof step>) =>
          Effect.promise(async () => (await send(ports, "m", [step(...args)]))[0])
        expect(yield* one("x".repeat(129), "SE", 1, "")).toContain("128 bytes")
        const tooMany = "[request id: <id_unknown>] inference request batch-size must be <= 2 for 'm'"
        expect(yield* one("x", "", 1, tooMany, { rows: 3 })).toBe(tooMany)
        const type =
          "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but model 'm' expects 'UINT64'"
        expect(yield* one("x", "", 1, type, { rows: 2 })).toBe(type)
        const before = yield* failures(ports)
        const rows = "inference request to model 'm' must specify batch-size 1 due to requirements of sequence batcher"
        expect(yield* one(0n, "", 1, rows, { rows: 2 })).toBe(rows)
        expect(yield* one(0n, "", 1, noId)).toBe(noId)
        expect(yield* one(7n, "E", 1, "")).toBe(notStarted("7"))
        expect(yield* failures(ports)).toEqual(before)
      }),
    )
  }
})

for (const [transport, send] of transports(4)) {
  // L1.5.unload@all
  it.live(`${transport}: an unloaded model has no sequences`, () =>
    Effect.gen(function* () {
      const files = {
        "m/config.pbtxt": sequences.config(sequences.state()),
        "m/1/model.onnx": sequences.accumulator(true),
      }
      const ports = yield* serveFiles(files, { repository: { control: "explicit", load: ["m"] } })
      const one = (flags: "S" | "") => Effect.promise(async () => (await send(ports, "m", [step(7n, flags, 1, 1)]))[0])
      expect(yield* one("S")).toBe(1)
      expect((yield* http(ports, "/v2/repository/models/m/unload", "{}")).status).toBe(200)
      expect(yield* one("")).toBe("Request for unknown model: 'm' has no available versions")
    }),
  )
}
