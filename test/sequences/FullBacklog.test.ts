/** A START beyond the slots and the backlog: over each transport it fails at once, with the time until a retry. */
import { create, fromBinary } from "@bufbuild/protobuf"
import { Client, credentials, Metadata, type ServiceError, status as codes } from "@grpc/grpc-js"
import { describe, expect, it } from "@effect/vitest"
import { ModelInferResponseSchema, ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import { Effect, Fiber } from "effect"
import * as sequences from "../fixtures/sequences.ts"
import { type Flags, step } from "./Scenario.ts"
import { http, inferRequest, metric, outputOf, type Ports, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

/** A refusal, as a client sees it. */
interface Refusal {
  readonly status: number
  readonly message: string
  /** Seconds of HTTP, or milliseconds of gRPC; undefined where the protocol has no place for them. */
  readonly retry: string | undefined
}

const overHttp = (ports: Ports, id: bigint) => {
  const inputs = [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }]
  const parameters = { sequence_id: Number(id), sequence_start: true }
  return Effect.map(
    http(ports, "/v2/models/m/infer", JSON.stringify({ parameters, inputs })),
    ({ status, headers, text }): Refusal => ({
      status,
      message: JSON.parse(text).error,
      retry: headers.get("retry-after") ?? undefined,
    }),
  )
}

const connect = ({ grpc }: Ports) => new Client(`127.0.0.1:${grpc}`, credentials.createInsecure())

const ofError = ({ code, details, metadata }: ServiceError): Refusal => ({
  status: code,
  message: details,
  retry: metadata.get("grpc-retry-pushback-ms")[0]?.toString(),
})

const request = (id: bigint, flags: Flags = "S") => inferRequest(step(id, flags, 1, 1), "m", true)

const overGrpc = (ports: Ports, id: bigint) =>
  Effect.callback<Refusal>((resume) => {
    const client = connect(ports)
    client.makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelInfer",
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(ModelInferResponseSchema, bytes),
      request(id),
      (error) => {
        client.close()
        resume(error === null ? Effect.die("It was accepted") : Effect.succeed(ofError(error)))
      },
    )
  })

const empty = () => create(ModelStreamInferResponseSchema)

/** A stream of two requests: the second one ends a sequence that has begun. `endsStream`: by `triton_grpc_error`. */
const overStream = (ports: Ports, id: bigint, endsStream: boolean) =>
  Effect.callback<{ readonly answers: ReadonlyArray<string | number>; readonly refusal: Refusal | undefined }>(
    (resume) => {
      const client = connect(ports)
      const metadata = new Metadata()
      if (endsStream) metadata.set("triton_grpc_error", "true")
      const stream = client.makeBidiStreamRequest(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => fromBinary(ModelStreamInferResponseSchema, bytes),
        metadata,
      )
      const answers: Array<string | number> = []
      const end = (refusal?: Refusal) => {
        client.close()
        resume(Effect.succeed({ answers, refusal }))
      }
      stream.on("data", ({ errorMessage, inferResponse }: ReturnType<typeof empty>) =>
        answers.push(inferResponse === undefined || errorMessage !== "" ? errorMessage : outputOf(inferResponse)),
      )
      stream.on("error", (error: ServiceError) => end(ofError(error)))
      stream.on("end", () => end())
      stream.write(request(id))
      if (!endsStream) stream.write(request(1n, "E"))
      stream.end()
    },
  )

const serve = (maxBacklog: number) =>
  serveFiles(
    {
      "m/config.pbtxt":
        sequences.config(`oldest { max_candidate_sequences: 1 } ${sequences.state()}`, { idle: 60_000_000 }) +
        `parameters { key: "max_sequence_backlog" value { string_value: "${maxBacklog}" } }`,
      "m/1/model.onnx": sequences.accumulator(true),
    },
    { server: { drainTimeout: "10 millis" } },
  )

const full = (limit: number) =>
  `[request id: <id_unknown>] Exceeds maximum queue size: the backlog of sequences of model 'm' has reached its limit of ${limit}. Retry once a ` +
  "sequence has ended, or raise 'max_sequence_backlog' (in code 'maxBacklog')"

// 0 refuses what would wait.
describe.each([0, 1, 2])("with max_sequence_backlog %i", (limit) => {
  it.live("a further START fails over HTTP, gRPC and its streams, and one of a sequence that has begun does not", () =>
    Effect.gen(function* () {
      const ports = yield* serve(limit)
      const [, send] = transports(4)[0] ?? []
      if (send === undefined) throw new Error("no transport")
      const call = (id: bigint, flags: Flags) => Effect.promise(() => send(ports, "m", [step(id, flags, 1, 1)]))
      expect(yield* call(1n, "S")).toEqual([1])
      const waiting = yield* Effect.forEach([2n, 3n].slice(0, limit), (id) =>
        Effect.forkChild(call(id, "SE"), { startImmediately: true }),
      )
      yield* Effect.repeat(metric(ports, "nereid_sequences_backlog"), { until: (count) => count === limit })

      const refusals = [yield* overHttp(ports, 9n), yield* overGrpc(ports, 9n)]
      expect(refusals).toEqual([
        { status: 503, message: full(limit), retry: expect.stringMatching(/^[1-9][0-9]*$/) },
        { status: codes.UNAVAILABLE, message: full(limit), retry: expect.stringMatching(/^[0-9]+$/) },
      ])
      const { refusal } = yield* overStream(ports, 9n, true)
      expect(refusal).toMatchObject({ status: codes.UNAVAILABLE, message: full(limit) })
      expect(yield* metric(ports, "nv_inference_request_failure", 'reason="REJECTED"')).toBe(3)
      expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)

      // START of a live sequence needs no place.
      expect(yield* call(1n, "S")).toEqual([1])
      // The stream goes on behind the refusal.
      expect(yield* overStream(ports, 9n, false)).toEqual({ answers: [full(limit), 2], refusal: undefined })
      for (const one of waiting) expect(yield* Fiber.join(one)).toEqual([1])
      expect(yield* call(9n, "SE")).toEqual([1])
    }),
  )
})
