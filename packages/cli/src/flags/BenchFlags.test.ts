/** The command line of `nereid bench`, as the options that the load gets of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CliOutput, Command } from "effect/cli"
import * as NodeServices from "../NodeServices.ts"
import * as BenchFlags from "./BenchFlags.ts"
import * as BenchLoadFlags from "./BenchLoadFlags.ts"
import * as BenchRequestFlags from "./BenchRequestFlags.ts"
import * as BenchTargetFlags from "./BenchTargetFlags.ts"

interface Parsed {
  readonly options?: object
  readonly errors?: ReadonlyArray<string>
}

const parse = (line: string): Effect.Effect<Parsed> => {
  let parsed: Parsed = {}
  const command = Command.make("bench", { flags: BenchFlags.flags }, ({ flags }) =>
    Effect.gen(function* () {
      const target = yield* BenchTargetFlags.options(flags.target)
      const request = yield* BenchRequestFlags.options(flags.request)
      parsed = { options: { ...target, ...request, ...(yield* BenchLoadFlags.options(flags.load)), ...flags.output } }
    }).pipe(
      Effect.catch(({ message }) => {
        parsed = { errors: [message] }
        return Effect.void
      }),
    ),
  )
  const presenter = CliOutput.layerPresenter({
    present: (event) =>
      Effect.sync(() => {
        if (event._tag === "InvalidInvocation") parsed = { errors: event.errors.map(({ message }) => message) }
      }),
  })
  return Command.runWith(command, { version: "0" })(line.split(" ")).pipe(
    Effect.ignore,
    Effect.provide(Layer.merge(NodeServices.layer, presenter)),
    Effect.map(() => parsed),
  )
}

describe("options", () => {
  it.effect.each<readonly [string, object]>([
    [
      "-m add_sub",
      {
        endpoint: { protocol: "http", host: "localhost", port: 8000, secure: false },
        protocol: "http",
        model: { name: "add_sub", version: "" },
        headers: {},
        parameters: {},
        seed: 1,
        checkLengths: true,
        inputs: { synthetic: { values: "random", batchSize: 1, textLength: 128, variants: 1 } },
        levels: [{ concurrency: 1 }],
        rounds: 3,
        extent: { seconds: 3 },
        warmUp: { seconds: 1 },
        connections: 4,
        maxOutstanding: 1024,
        patience: 30_000,
        percentages: [50, 90, 99],
        threshold: Infinity,
      },
    ],
    // A command line in the style of perf_analyzer.
    [
      "-m net -x 2 -u models:8001 -i GRPC --streaming -b 8 --shape IN:3,224,224 --shape MASK:1 -p 5000 -f out.csv",
      {
        endpoint: { protocol: "grpc", host: "models", port: 8001 },
        protocol: "grpc-stream",
        model: { name: "net", version: "2" },
        inputs: {
          synthetic: {
            batchSize: 8,
            shapes: new Map([
              ["IN", [3, 224, 224]],
              ["MASK", [1]],
            ]),
          },
        },
        extent: { seconds: 5 },
        csv: "out.csv",
      },
    ],
    [
      "-m a --concurrency-range 1:4 -l 10 --percentile 99.9,95",
      { levels: [1, 2, 3, 4].map((concurrency) => ({ concurrency })), threshold: 10, percentages: [95, 99.9] },
    ],
    ["-m a --input-tensor-format json --output-tensor-format json", { protocol: "http-json" }],
    ["-m a -u grpc://x", { protocol: "grpc", endpoint: { port: 8001 } }],
    [
      "-m a --request-rate-range 10:20:10 --request-distribution constant --max-outstanding 7",
      {
        levels: [
          { perSecond: 10, distribution: "constant" },
          { perSecond: 20, distribution: "constant" },
        ],
        maxOutstanding: 7,
      },
    ],
    ["-m a --request-rate 0.5", { levels: [{ perSecond: 0.5, distribution: "poisson" }] }],
    ["-m a --request-count 10 --rounds 1 --warm-up 0", { extent: { requests: 10 }, rounds: 1, warmUp: undefined }],
    [
      "-m a --seconds .5 --warm-up 0.25 --patience 2",
      { extent: { seconds: 0.5 }, warmUp: { seconds: 0.25 }, patience: 2000 },
    ],
    ["-m a -H X-User:me -H a:b:c", { headers: { "x-user": "me", a: "b:c" } }],
    [
      "-m a --request-parameter n:5:int --request-parameter f:on:bool --request-parameter d:1:double --request-parameter s:a:b",
      { parameters: { n: 5n, f: true, d: 1, s: "a:b" } },
    ],
    [
      "-m a --input-data zero --string-length 3 --string-data x --variants 9",
      { inputs: { synthetic: { values: "zero", text: "x", textLength: 3, variants: 9 } } },
    ],
    [
      "-m a -u https://x/y --tls-insecure true",
      { tls: { rejectUnauthorized: false, servername: "x" }, endpoint: { path: "/y", secure: true } },
    ],
    ["-m a --check-lengths false", { checkLengths: false }],
  ])("%s", ([line, expected]) =>
    Effect.gen(function* () {
      const { options, errors } = yield* parse(line)
      expect(errors).toBeUndefined()
      expect(options).toMatchObject(expected)
    }),
  )
})

describe("refuses", () => {
  it.effect.each<readonly [string, string]>([
    ["--url x", "--model is required, as in nereid bench --model=digits"],
    ["-m a -u ftp://x", "it may begin with grpc://"],
    ["-m a -u http://x -i grpc", "--protocol=grpc contradicts http://x"],
    ["-m a --streaming", "--streaming requires gRPC: add --protocol=grpc"],
    ["-m a -i grpc --tensor-format json", "--tensor-format=json requires HTTP: omit --protocol=grpc"],
    ["-m a --tls-ca x.pem", "--tls-ca, --tls-cert and --tls-key require https:// or grpcs://"],
    ["-m a -u https://x --tls-cert x.pem", "--tls-cert and --tls-key must be given together"],
    ["-m a -u https://x --tls-ca /absent.pem", "ENOENT"],
    ["-m a -H secret", 'Invalid value for flag --header: "secret". Expected: name:value'],
    ["-m a --concurrency 1 --request-rate 1", "--concurrency and --request-rate exclude each other: pass one of them"],
    ["-m a --concurrency 0", "Expected: integers of at least 1, such as 1,4,16 or 1:16:5 or 1:64:x2"],
    ["-m a --request-rate x", "Expected: numbers above 0, such as"],
    ["-m a --request-distribution even", "Expected: constant, poisson"],
    ["-m a --percentile 100", "--percentile: 100 is not a number above 0 and below 100"],
    ["-m a --percentile p99", "--percentile: p99 is not a number"],
    ["-m a --shape IN", "Expected: name:extent,extent,…"],
    ["-m a --request-parameter n:x:int", "Expected: name:value:type"],
    ["-m a --seconds 0", "Expected: a number above 0"],
    ["-m a --input-data /absent.json", "--input-data: ENOENT"],
    ["-m a --tensor-format text", "Expected: binary, json"],
  ])("%s", ([line, message]) =>
    Effect.gen(function* () {
      expect((yield* parse(line)).errors).toEqual([expect.stringContaining(message)])
    }),
  )
})
