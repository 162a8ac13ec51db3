/** The environment of `nereid serve`, as the options that the server gets of it. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "./ServeCommand.fixture.ts"
import * as ServerFlags from "./ServerFlags.ts"
import * as Variables from "./Variables.ts"

const words = (line: string) => line.split(" ").filter((word) => word !== "")

const environment = (line: string) =>
  Object.fromEntries(
    words(line).map((pair): [string, string] => [pair.split("=")[0] ?? "", pair.replace(/^[^=]*=/, "")]),
  )

describe("a variable", () => {
  it.effect.each<readonly [string, string, object]>([
    ["NEREID_HTTP_PORT=9000 NEREID_GRPC_PORT=9001", "", { http: { port: 9000 }, grpc: { port: 9001 } }],
    ["NEREID_HTTP_PORT=9000", "--http-port=9002", { http: { port: 9002 } }],
    ["NEREID_HTTP_PORT=", "", { http: { port: 8000 } }],
    ["HTTP_PORT=1 NEREIDS=2", "", { http: { port: 8000 } }],
    ["NEREID_ALLOW_GRPC=false NEREID_LOG_FORMAT=iso8601", "", { grpc: false, logging: { format: "ISO8601" } }],
    [
      "NEREID_HTTP_USE_SSL=true NEREID_HTTP_SERVER_CERT=a.crt NEREID_HTTP_SERVER_KEY=a.key",
      "",
      { tls: { http: { cert: "a.crt", key: "a.key", mutual: false } } },
    ],
    [
      "NEREID_METRICS_CONFIG_1=summary_latencies=false NEREID_METRICS_CONFIG_0=summary_latencies=true",
      "",
      { metricsOptions: { summaryLatencies: false } },
    ],
    [
      "NEREID_METRICS_CONFIG=summary_latencies=true NEREID_METRICS_CONFIG_10=summary_latencies=false",
      "",
      { metricsOptions: { summaryLatencies: false } },
    ],
  ])("%s %s", ([variables, line, expected]) =>
    Effect.gen(function* () {
      expect((yield* parse(words(line), environment(variables))).options).toMatchObject(expected)
    }),
  )

  it.effect("of a flag that may come several times: those of the command line go before all of them", () =>
    Effect.gen(function* () {
      const variables = environment("NEREID_HTTP_RESTRICTED_API_0=health:a=1 NEREID_HTTP_RESTRICTED_API_1=trace:b=2")
      const { options } = yield* parse([], variables)
      expect(options?.restrictedApis?.http).toMatchObject([{ key: "a" }, { key: "b" }])
      const replaced = yield* parse(["--http-restricted-api=logging:c=3"], variables)
      expect(replaced.options?.restrictedApis?.http).toMatchObject([{ key: "c" }])
    }),
  )

  it.effect("is refused by its name, with what is allowed; secrets are not shown", () =>
    Effect.gen(function* () {
      for (const [variables, message] of [
        [
          "NEREID_HTTP_PORT=many",
          'Invalid value for environment variable NEREID_HTTP_PORT: "many". Expected: an integer from 0 to 65535',
        ],
        [
          "NEREID_HTTP_PORT_0=1",
          "NEREID_HTTP_PORT_0 is numbered, but --http-port takes one value: set NEREID_HTTP_PORT",
        ],
        [
          "NEREID_HTTP_RESTRICTED_API=healthy:key=secret",
          'Invalid value for environment variable NEREID_HTTP_RESTRICTED_API: "healthy:key=…". Expected: ',
        ],
        [
          "NEREID_DISABLE_AUTO_COMPLETE_CONFIG=maybe",
          'NEREID_DISABLE_AUTO_COMPLETE_CONFIG: "maybe". Expected: true, false, 1 or 0',
        ],
        ["NEREID_REUSE_HTTP_PORT=on", "NEREID_REUSE_HTTP_PORT=on is not supported: servers cannot share a port"],
      ] as const) {
        expect((yield* parse([], environment(variables))).errors).toEqual([expect.stringContaining(message)])
      }
      expect(yield* parse([], environment("NEREID_REUSE_HTTP_PORT=off NEREID_HTTP_THREAD_COUNT=8"))).toMatchObject({
        warnings: ["Flags without effect: NEREID_HTTP_THREAD_COUNT"],
      })
    }),
  )

  it.effect("that matches no flag is refused, with the most similar one", () =>
    Effect.gen(function* () {
      const { errors } = yield* parse([], environment("NEREID_HTPP_PORT=1 NEREID_COLOUR=red NEREID_HTTP_PORT_01=2"))
      expect(errors).toEqual([
        [
          "NEREID_HTPP_PORT is not the environment variable of any flag; did you mean NEREID_HTTP_PORT?",
          "NEREID_COLOUR is not the environment variable of any flag",
          "NEREID_HTTP_PORT_01 is not the environment variable of any flag; did you mean NEREID_HTTP_PORT?",
        ].join("\n"),
      ])
    }),
  )

  it.effect("of a package is not refused: NEREID_PYTHON names the interpreter of models in Python", () =>
    Effect.gen(function* () {
      const { errors } = yield* parse([], { NEREID_PYTHON: "/usr/bin/python3" })
      expect(errors).toBeUndefined()
    }),
  )

  it.effect("of a service link is ignored: all that Kubernetes or Docker sets, or only a part", () =>
    Effect.gen(function* () {
      const service = (name: string, port: number) => ({
        [`${name}_SERVICE_HOST`]: "10.0.0.1",
        [`${name}_SERVICE_PORT`]: `${port}`,
        [`${name}_SERVICE_PORT_HTTP`]: `${port}`,
        [`${name}_PORT`]: `tcp://10.0.0.1:${port}`,
        [`${name}_PORT_${port}_TCP`]: `tcp://10.0.0.1:${port}`,
        [`${name}_PORT_${port}_TCP_PROTO`]: "tcp",
        [`${name}_PORT_${port}_TCP_PORT`]: `${port}`,
        [`${name}_PORT_${port}_TCP_ADDR`]: "10.0.0.1",
      })
      const links = { ...service("NEREID", 80), ...service("NEREID_HTTP", 8000) }
      const { options, errors } = yield* parse([], links)
      expect(errors).toBeUndefined()
      expect(options).toMatchObject({ http: { port: 8000 } })
      expect(options).not.toHaveProperty("port")
      for (const [name, value] of Object.entries(links)) {
        expect(yield* parse([], { [name]: value }), name).toMatchObject({ options: { http: { port: 8000 } } })
      }
      const mixed = yield* parse([], {
        ...links,
        NEREID_HTTP_PORT: "9000",
        NEREID_PORT_9_TCP: "x",
        NEREID_SERVICE: "x",
      })
      expect(mixed.errors).toEqual(["NEREID_SERVICE is not the environment variable of any flag"])
    }),
  )
})

it("every flag has one, and no two the same", () => {
  const names = Object.values(ServerFlags.flags).flatMap((group) => Variables.flagNames(group))
  expect(names.length).toBeGreaterThan(90)
  expect(new Set(names.map(Variables.nameOf)).size).toBe(names.length)
})
