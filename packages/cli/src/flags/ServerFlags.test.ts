/** The command line of `nereid serve`, as the options that the server gets of it (C40). */
import { describe, expect, it } from "@effect/vitest"
import type { ServerOptions } from "@nereid/server/Server"
import { Effect } from "effect"
import { parse } from "./ServeCommand.fixture.ts"

/** Both spellings of the same. */
const spelled = (line: string): ReadonlyArray<ReadonlyArray<string>> => {
  const flags = [...line.matchAll(/(--\S+) (\S+)/g)].map(([, name = "", value = ""]) => [name, value])
  return [flags.map((flag) => flag.join("=")), flags.flat()]
}

describe("options", () => {
  it.effect("without flags: the defaults of tritonserver", () =>
    Effect.gen(function* () {
      const { options, warnings } = yield* parse()
      expect(options).toMatchObject({
        http: { host: "0.0.0.0", port: 8000 },
        grpc: { host: "0.0.0.0", port: 8001 },
        metrics: { host: "0.0.0.0", port: 8002 },
        maxInputSize: 67_108_864,
        allowClientSharedMemory: false,
        tuneGarbageCollector: true,
        http2: "own",
        responseCompression: "none",
        forwardHeaders: {},
        restrictedApis: { http: [], grpc: [] },
        logging: { file: "", info: true, warning: true, error: true, verboseLevel: 0, format: "default" },
        trace: { levels: [] },
        keepalive: {
          time: 7_200_000,
          timeout: 20_000,
          permitWithoutCalls: false,
          maxPingsWithoutData: 2,
          minReceiveInterval: 300_000,
          maxPingStrikes: 2,
        },
        metricsOptions: { cpu: true, interval: 2000, queueTarget: 100 },
        drainTimeout: "30 seconds",
      })
      expect(options).not.toHaveProperty("id")
      expect(options).not.toHaveProperty("cors")
      expect(options).not.toHaveProperty("allowedHosts")
      expect(options).not.toHaveProperty("port")
      expect(options).not.toHaveProperty("maxHttpConnectionAge")
      expect(options?.keepalive).not.toHaveProperty("maxConnectionAge")
      expect(options?.keepalive).not.toHaveProperty("maxConnectionAgeGrace")
      expect(warnings).toEqual([])
    }),
  )

  it.effect.each<readonly [string, ServerOptions]>([
    ["--id triton", { id: "triton" }],
    ["--strict-readiness 0", { strictReadiness: false }],
    ["--hand-over-sequences http://b:8000", { handOverSequences: { url: "http://b:8000" } }],
    [
      "--hand-over-sequences http://b:8000 --hand-over-header Admin-Key:a=b:c --hand-over-header x-a:1",
      { handOverSequences: { url: "http://b:8000", headers: { "admin-key": "a=b:c", "x-a": "1" } } },
    ],
    ["--http2 node", { http2: "node" }],
    ["--exit-timeout-secs 0", { drainTimeout: "0 seconds" }],
    ["--saturation-queue-target-ms 50", { metricsOptions: { cpu: true, interval: 2000, queueTarget: 50 } }],
    ["--drain-delay 15", { drainDelay: "15 seconds" }],
    ["--http-max-connection-age 300000", { maxHttpConnectionAge: 300_000 }],
    ["--max-connections 5", { maxConnections: 5 }],
    ["--max-in-flight-size 4096", { maxInFlightSize: 4096 }],
    ["--allow-client-shm true", { allowClientSharedMemory: true }],
    ["--tune-garbage-collector false", { tuneGarbageCollector: false }],
    ["--allow-http false", { http: false }],
    ["--allow-http True", { http: { host: "0.0.0.0", port: 8000 } }],
    ["--http-port 0", { http: { host: "0.0.0.0", port: 0 } }],
    ["--http-address ::1", { http: { host: "::1", port: 8000 }, metrics: { host: "::1", port: 8002 } }],
    ["--http-max-input-size 1024", { maxInputSize: 1024 }],
    ["--http-header-forward-pattern (?i)x-.*=1", { forwardHeaders: { http: "(?i)x-.*=1" } }],
    [
      "--http-restricted-api health,statistics:admin-key=a=b:c",
      { restrictedApis: { http: [{ apis: ["health", "statistics"], key: "admin-key", value: "a=b:c" }], grpc: [] } },
    ],
    ["--allow-grpc 0", { grpc: false }],
    ["--grpc-address 127.0.0.1", { grpc: { host: "127.0.0.1", port: 8001 } }],
    ["--grpc-port 65535", { grpc: { host: "0.0.0.0", port: 65_535 } }],
    ["--grpc-max-message-size 1000", { maxMessageSize: 1000 }],
    ["--grpc-infer-response-compression-level HIGH", { responseCompression: "high" }],
    ["--grpc-header-forward-pattern x-.*", { forwardHeaders: { grpc: "x-.*" } }],
    [
      "--grpc-restricted-protocol inference:k=v",
      { restrictedApis: { http: [], grpc: [{ apis: ["inference"], key: "k", value: "v" }] } },
    ],
    ...(["http", "grpc", "port"] as const).map((port): readonly [string, ServerOptions] => [
      `--port 0 --${port}-use-ssl true --${port}-server-cert a.crt --${port}-server-key a.key`,
      { tls: { [port]: { cert: "a.crt", key: "a.key", mutual: false } } },
    ]),
    [
      "--grpc-use-ssl-mutual 1 --grpc-server-cert a.crt --grpc-server-key a.key --grpc-root-cert ca.crt",
      { tls: { grpc: { cert: "a.crt", key: "a.key", ca: "ca.crt", mutual: true } } },
    ],
    [
      "--grpc-keepalive-time 1 --grpc-keepalive-timeout 2 --grpc-keepalive-permit-without-calls 1",
      { keepalive: { time: 1, timeout: 2, permitWithoutCalls: true } },
    ],
    ["--grpc-http2-max-pings-without-data 0", { keepalive: { maxPingsWithoutData: 0 } }],
    ["--grpc-http2-min-recv-ping-interval-without-data 5", { keepalive: { minReceiveInterval: 5 } }],
    ["--grpc-http2-max-ping-strikes 0", { keepalive: { maxPingStrikes: 0 } }],
    [
      "--grpc-max-connection-age 60000 --grpc-max-connection-age-grace 0",
      { keepalive: { maxConnectionAge: 60_000, maxConnectionAgeGrace: 0 } },
    ],
    ["--port 9000", { http: { host: "0.0.0.0", port: 8000 }, port: { host: "0.0.0.0", port: 9000 } }],
    [
      "--port 8000 --port-address ::1 --allow-http 0 --allow-grpc 0",
      { http: false, grpc: false, port: { host: "::1", port: 8000 } },
    ],
    ["--dashboard false", { dashboard: false }],
    ["--dashboard /ops", { dashboard: { path: "/ops" } }],
    ["--cors-origins *", { cors: { origins: "*", headers: [], exposedHeaders: [], maxAge: "7200 seconds" } }],
    [
      "--cors-origins https://a.example,https://b.example --cors-headers x-a,x-b --cors-exposed-headers x-c --cors-max-age-secs 5",
      {
        cors: {
          origins: ["https://a.example", "https://b.example"],
          headers: ["x-a", "x-b"],
          exposedHeaders: ["x-c"],
          maxAge: "5 seconds",
        },
      },
    ],
    ["--allowed-hosts a.example,*.b.example --allowed-hosts c", { allowedHosts: ["a.example", "*.b.example", "c"] }],
    ["--allowed-hosts *", { allowedHosts: "*" }],
    ["--log-verbose 2", { logging: { verboseLevel: 2 } }],
    ["--log-verbose true", { logging: { verboseLevel: 1 } }],
    ["--log-info 0 --log-warning FALSE --log-error false", { logging: { info: false, warning: false, error: false } }],
    ["--log-format iso8601 --log-file server.log", { logging: { format: "ISO8601", file: "server.log" } }],
    [
      "--trace-config level=timestamps --trace-config level=TENSORS --trace-config triton,file=a=b.json",
      { trace: { levels: ["TIMESTAMPS", "TENSORS"], file: "a=b.json" } },
    ],
    [
      "--trace-config rate=10 --trace-config count=-1 --trace-config triton,log-frequency=5 --trace-config mode=triton",
      { trace: { levels: [], rate: 10, count: -1, logFrequency: 5 } },
    ],
    ["--trace-config level=TIMESTAMPS --trace-config level=OFF", { trace: { levels: [] } }],
    [
      "--trace-config level=TIMESTAMPS --trace-config mode=OpenTelemetry --trace-config opentelemetry,url=a:4318/v1/traces " +
        "--trace-config opentelemetry,resource=service.name=edge --trace-config opentelemetry,resource=a=b=c " +
        "--trace-config opentelemetry,bsp_max_queue_size=7 --trace-config opentelemetry,bsp_schedule_delay=100 " +
        "--trace-config opentelemetry,bsp_max_export_batch_size=3",
      {
        trace: {
          levels: ["TIMESTAMPS"],
          mode: "opentelemetry",
          openTelemetry: {
            url: "http://a:4318/v1/traces",
            resource: { "service.name": "edge", a: "b=c" },
            maxQueueSize: 7,
            scheduleDelay: 100,
            maxExportBatchSize: 3,
          },
        },
      },
    ],
    [
      "--trace-level TIMESTAMPS --trace-file t.json --trace-rate 2 --trace-count 3 --trace-log-frequency 4",
      { trace: { levels: ["TIMESTAMPS"], file: "t.json", rate: 2, count: 3, logFrequency: 4 } },
    ],
    ["--allow-metrics 0", { metrics: false }],
    ["--metrics-address 127.0.0.1", { metrics: { host: "127.0.0.1", port: 8002 } }],
    ["--metrics-port 0", { metrics: { host: "0.0.0.0", port: 0 } }],
    ["--allow-cpu-metrics false", { metricsOptions: { cpu: false } }],
    ["--metrics-interval-ms 500", { metricsOptions: { interval: 500 } }],
    ["--metrics-config counter_latencies=false", { metricsOptions: { counterLatencies: false } }],
    ["--metrics-config histogram_latencies=true", { metricsOptions: { histogramLatencies: true } }],
    ["--metrics-config summary_latencies=1", { metricsOptions: { summaryLatencies: true } }],
    [
      "--metrics-config summary_quantiles=0.5:0.05,0.999:0.001,1",
      { metricsOptions: { summaryQuantiles: [0.5, 0.999, 1] } },
    ],
  ])("%s, and with =", ([flag, expected]) =>
    Effect.gen(function* () {
      for (const args of spelled(flag)) expect((yield* parse(args)).options, args.join(" ")).toMatchObject(expected)
    }),
  )

  it.effect("--no-dashboard turns the page off, whatever --dashboard says", () =>
    Effect.gen(function* () {
      expect((yield* parse()).options).toMatchObject({ dashboard: true })
      expect((yield* parse(["--no-dashboard"])).options).toMatchObject({ dashboard: false })
      expect((yield* parse(["--dashboard=/ops", "--no-dashboard"])).options).toMatchObject({ dashboard: false })
    }),
  )

  it.effect("the last value of a repeated flag counts; all values of a repeatable flag count", () =>
    Effect.gen(function* () {
      const { options } = yield* parse(
        [
          "--http-port=1 --http-port 2 --http-restricted-api=health:a=1 --http-restricted-api=trace:b=2",
          "--metrics-config summary_latencies=true --metrics-config=counter_latencies=false",
        ].flatMap((line) => line.split(" ")),
      )
      expect(options).toMatchObject({
        http: { port: 2 },
        restrictedApis: {
          http: [
            { apis: ["health"], key: "a" },
            { apis: ["trace"], key: "b" },
          ],
        },
        metricsOptions: { summaryLatencies: true, counterLatencies: false },
      })
    }),
  )
})

describe("refuses", () => {
  it.effect.each<readonly [string, string]>([
    ["--http-port 65536", 'Invalid value for flag --http-port: "65536". Expected: an integer from 0 to 65535'],
    ["--http-port 8e3", 'Invalid value for flag --http-port: "8e3". Expected: an integer from 0 to 65535'],
    ["--exit-timeout-secs -5", 'Invalid value for flag --exit-timeout-secs: "-5". Expected: an integer of at least 0'],
    [
      "--grpc-infer-response-compression-level best",
      'Invalid value for flag --grpc-infer-response-compression-level: "best". Expected: none, low, medium, high',
    ],
    ["--http2 nghttp2", 'Invalid value for flag --http2: "nghttp2". Expected: own, node'],
    ["--allow-grpc maybe", 'Invalid value for flag --allow-grpc: "maybe". Expected: true, false, 1 or 0'],
    [
      "--metrics-config summary_latencies=2",
      'Invalid value for flag --metrics-config: "summary_latencies=2". Expected: ',
    ],
    [
      "--metrics-config summary_quantiles=2",
      'Invalid value for flag --metrics-config: "summary_quantiles=2". Expected: ',
    ],
    ["--metrics-config latencies=true", 'Invalid value for flag --metrics-config: "latencies=true". Expected: '],
    ["--http-restricted-api health", 'Invalid value for flag --http-restricted-api: "health". Expected: '],
    [
      "--http-restricted-api health;key=secret",
      'Invalid value for flag --http-restricted-api: "health;key=…". Expected: ',
    ],
    ["--grpc-restricted-protocol x:a=b", 'Invalid value for flag --grpc-restricted-protocol: "x:a=…". Expected: '],
    ["--grpc-restricted-protocol x:a=b", "; unknown restricted protocol 'x'"],
    [
      "--grpc-use-ssl true --grpc-server-cert a.crt",
      "--grpc-use-ssl requires --grpc-server-cert and --grpc-server-key",
    ],
    ["--http-server-key a.key", "--http-server-key requires --http-use-ssl=true"],
    [
      "--http-use-ssl-mutual true --http-server-cert a.crt --http-server-key a.key",
      "--http-use-ssl-mutual requires --http-root-cert",
    ],
    [
      "--allow-http false --allow-grpc 0",
      "--allow-http=false and --allow-grpc=false leave no port for inference: allow one of them, or pass --port",
    ],
    [
      "--hand-over-sequences http://b --hand-over-header a,b:s3cret",
      'Invalid value for flag --hand-over-header: "a,b:…". Expected: name:value',
    ],
    ["--hand-over-header key:s3cret", "--hand-over-header requires --hand-over-sequences"],
    ["--port-address ::1", "--port-address requires --port"],
    ["--port-use-ssl true --port-server-cert a.crt --port-server-key a.key", "--port-use-ssl requires --port"],
    [
      "--dashboard here",
      'Invalid value for flag --dashboard: "here". Expected: true, false or a path such as /dashboard',
    ],
    [
      "--cors-origins https://a.example,",
      'Invalid value for flag --cors-origins: "https://a.example,". Expected: origin,…',
    ],
    ["--log-verbose much", "Expected: an integer from 0 to 4294967295, true for 1 or false for 0"],
    ["--log-verbose 4294967296", "Expected: an integer from 0 to 4294967295, true for 1 or false for 0"],
    [
      "--trace-config opentelemetry,foo=1",
      "Expected: setting=value, such as rate=100, with a setting of level, rate, count, triton,file, ",
    ],
    ["--trace-config mode=jaeger", "Expected: mode=triton|opentelemetry"],
    ["--trace-config opentelemetry,url=ftp://a", "Expected: opentelemetry,url=URL, with http or https"],
    ["--trace-config opentelemetry,resource=a", "Expected: opentelemetry,resource=key=value"],
    ["--trace-config opentelemetry,bsp_max_queue_size=0", "Expected: an integer from 1 to 1000000"],
    ["--trace-config rate=often", "Expected: an integer from 0 to 4294967295"],
    ["--trace-config rate=4294967296", "Expected: an integer from 0 to 4294967295"],
    ["--trace-config count=2147483648", "Expected: an integer from -1 to 2147483647"],
    ["--trace-log-frequency 4294967296", "Expected: an integer from 0 to 4294967295"],
    ["--trace-level ALL", 'Invalid value for flag --trace-level: "ALL". Expected: OFF, TIMESTAMPS, TENSORS'],
    ["--trace-config level=TENSORS", "--trace-config level=TENSORS requires --trace-config triton,file=PATH"],
    [
      "--grpc-keepalive-time 0",
      'Invalid value for flag --grpc-keepalive-time: "0". Expected: an integer of at least 1',
    ],
    ["--reuse-grpc-port on", "--reuse-grpc-port=on is not supported: servers cannot share a port"],
  ])("%s, and with =", ([flag, message]) =>
    Effect.gen(function* () {
      for (const args of spelled(flag)) {
        expect((yield* parse(args)).errors, args.join(" ")).toEqual([expect.stringContaining(message)])
      }
    }),
  )

  it.effect("a flag without its value", () =>
    Effect.gen(function* () {
      expect((yield* parse(["--http-port"])).errors).toEqual(["Missing value for flag --http-port. Expected: integer"])
    }),
  )

  it.effect("an unknown flag, with the closest one there is", () =>
    Effect.gen(function* () {
      const { errors } = yield* parse(["--htpp-port=1"])
      expect(errors).toEqual([expect.stringMatching(/Unrecognized flag: --htpp-port[^]*--http-port/)])
    }),
  )
})

// A12.host-policy@command
it.effect("flags of tritonserver that cannot matter are taken, and named", () =>
  Effect.gen(function* () {
    const { options, warnings } = yield* parse(
      [
        "--http-thread-count=8 --cuda-memory-pool-byte-size 0:1024 --cuda-memory-pool-byte-size=1:0",
        "--host-policy=p,numa-node=0 --pinned-memory-pool-byte-size=1 --enable-peer-access=false",
        "--http-port 1 --model-load-retry-count=2",
        "--backend-config=tensorflow,version=2 --backend-config default-max-batch-size=8",
        "--backend-config=python,shm-default-byte-size=1048576",
      ].flatMap((line) => line.split(" ")),
    )
    const named = [
      "--http-thread-count",
      "--pinned-memory-pool-byte-size",
      "--cuda-memory-pool-byte-size",
      "--enable-peer-access",
      "--host-policy",
      "--model-load-retry-count",
      "--backend-config=tensorflow,version=2",
      "--backend-config=python,shm-default-byte-size=1048576",
    ]
    expect(warnings).toEqual([`Flags without effect: ${named.join(", ")}`])
    expect(options).toMatchObject({ http: { port: 1 } })
  }),
)

it.effect("warns about deprecated flags in Triton's words, and takes them", () =>
  Effect.gen(function* () {
    const { options, warnings } = yield* parse(
      "--strict-model-config=false --trace-rate=7 --trace-file=t.json --trace-level=OFF".split(" "),
    )
    const removed = "has been deprecated and will be removed in future releases. Please use '--trace-config"
    expect(warnings).toEqual([
      "'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead.",
      `'--trace-file' ${removed} triton,file=<filepath> instead.`,
      `'--trace-level' ${removed} level=<OFF|TIMESTAMPS|TENSORS> instead.`,
      `'--trace-rate' ${removed} rate=<rate value> instead.`,
    ])
    expect(options).toMatchObject({ trace: { rate: 7, file: "t.json" } })
    expect((yield* parse([])).warnings).toEqual([])
  }),
)

it.effect("--trace-config overrides the deprecated flags, as in Triton, and a warning names them", () =>
  Effect.gen(function* () {
    const { options, warnings } = yield* parse(
      "--trace-config=rate=3 --trace-rate=7 --trace-level=OFF --trace-config=level=TIMESTAMPS --trace-file=old.json --trace-config=triton,file=new.json --trace-count=5 --trace-log-frequency=6 --trace-config=triton,log-frequency=2".split(
        " ",
      ),
    )
    expect(options).toMatchObject({
      trace: { rate: 3, levels: ["TIMESTAMPS"], file: "new.json", count: 5, logFrequency: 2 },
    })
    expect(warnings?.filter((text) => text.startsWith("Overriding"))).toEqual([
      "Overriding deprecated '--trace-file' in favor of provided file in --trace-config!",
      "Overriding deprecated '--trace-level' in favor of provided level in --trace-config!",
      "Overriding deprecated '--trace-rate' in favor of provided rate value in --trace-config!",
      "Overriding deprecated '--trace-log-frequency' in favor of provided log-frequency in --trace-config!",
    ])
  }),
)

it.effect(
  "a flag that is refused is taken with the value that stands for what happens anyway, however it is written",
  () =>
    Effect.gen(function* () {
      for (const flags of ["--allow-vertex-ai FALSE --reuse-http-port=off", "--allow-sagemaker=OFF"]) {
        expect((yield* parse(flags.split(" "))).errors, flags).toBeUndefined()
      }
      for (const flag of ["--reuse-http-port=1", "--allow-sagemaker=true"]) {
        expect((yield* parse([flag])).errors).toEqual([expect.stringContaining(`${flag} is not supported: `)])
      }
    }),
)
