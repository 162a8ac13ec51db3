/** Servers of models with sequences, from a repository. */
import { Context, Effect, Layer } from "effect"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { vi } from "vitest"
import { repository } from "../fixtures/repository.ts"
import type { Scenario } from "./Scenario.ts"
import { filesOf } from "./SequenceModels.ts"

const free = { host: "127.0.0.1", port: 0 }

interface Options {
  readonly server?: Server.ServerOptions
  readonly repository?: Partial<Repository.Options>
  /** As in Scenario. */
  readonly hold?: Scenario["hold"]
}

/** A server with a repository of these files, which its scope stops. */
export const serveFiles = Effect.fnUntraced(function* (
  files: Readonly<Record<string, string | Uint8Array>>,
  options: Options = {},
) {
  const fixture = yield* repository
  for (const [file, content] of Object.entries(files)) fixture.write(file, content)
  const [requests, backlogged] = options.hold ?? [0, 0]
  vi.stubEnv("TRITONSERVER_DELAY_SCHEDULER", String(requests))
  vi.stubEnv("TRITONSERVER_BACKLOG_DELAY_SCHEDULER", String(backlogged))
  yield* Effect.addFinalizer(() => Effect.sync(() => vi.unstubAllEnvs()))
  const layer = Server.layer([], { http: free, grpc: free, metrics: free, ...options.server }).pipe(
    Layer.provide(Repository.layer({ directories: [fixture.path], ...options.repository })),
  )
  const { http, grpc, metrics } = Context.get(yield* Layer.build(layer), Server.Server)
  return { http: http?.port ?? 0, grpc: grpc?.port ?? 0, metrics: metrics?.port ?? 0 }
})

/** A server with the model `m` of the scenario. */
export const serve = (scenario: Scenario, options: Options = {}) =>
  serveFiles(filesOf(scenario), { hold: scenario.hold, ...options })
