/** The servers behind the proxies of the tests: their models, and how they stop. */
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"

export class Size extends Model.Service<Size>()("size", {
  inputs: { DATA: Tensor.UINT8(-1) },
  outputs: { BYTES: Tensor.scalar("INT32"), FOR: Tensor.utf8(), SERVER: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

/** Sends 1, and 2 once a gate is opened. */
export class Two extends Model.Service<Two>()("two", {
  inputs: { GO: Tensor.scalar("BOOL") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

/** Sends 1, 2 and 3, in 300 milliseconds. */
export class Three extends Model.Service<Three>()("three", {
  inputs: { GO: Tensor.scalar("BOOL") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

/** Those of the streams that wait. */
export const gates: Array<() => void> = []

const models = (server: number) =>
  Layer.mergeAll(
    Model.each(Size, ({ DATA }, { parameters }) => ({
      BYTES: DATA.data.length,
      FOR: String(parameters["x-forwarded-for"] ?? ""),
      SERVER: server,
    })),
    Model.stream(
      Two,
      async function* () {
        yield { NUMBER: 1 }
        await new Promise<void>((resolve) => void gates.push(resolve))
        yield { NUMBER: 2 }
      },
      { instances: 4 },
    ),
    Model.stream(
      Three,
      async function* () {
        for (const NUMBER of [1, 2, 3]) {
          yield { NUMBER }
          await pause(100)
        }
      },
      { instances: 8 },
    ),
  )

export const pause = (millis: number) => new Promise<void>((resolve) => setTimeout(resolve, millis))

export interface StartOptions {
  /** Ports of a server that this one replaces. */
  readonly http?: number
  readonly grpc?: number
  /** In seconds. Default 3, longer than the interval of the health checks. */
  readonly drainDelay?: number
  /** Files of a certificate. */
  readonly tls?: { readonly cert: string; readonly key: string }
}

export type ProxiedServer = Awaited<ReturnType<typeof start>>

/** `server`: number that its responses have. */
export const start = (server: number, { http = 0, grpc = 0, drainDelay = 3, tls }: StartOptions = {}) =>
  Server.start([Size, Two, Three], models(server), {
    http: { host: "127.0.0.1", port: http },
    grpc: { host: "127.0.0.1", port: grpc },
    metrics: false,
    drainDelay: `${drainDelay} seconds`,
    forwardHeaders: { http: "^x-forwarded-for$", grpc: "^x-forwarded-for$" },
    ...(tls !== undefined && { tls: { http: tls, grpc: tls } }),
  })
