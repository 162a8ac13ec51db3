/**
 * One replica as a program. Its ports are arguments, 0 for any. SIGTERM stops it, and SIGUSR2 makes it ten times slower
 * or as fast as before.
 */
import { Model } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { Sums, Work } from "./models.ts"

const [, , http = 0, grpc = 0] = process.argv.map(Number)
const host = "127.0.0.1"
const PROCESS = process.pid
const usual = 20
let millis = usual
process.on("SIGUSR2", () => (millis = millis === usual ? 10 * usual : usual))

const models = Layer.merge(
  Model.each(Work, ({ X }) => Effect.as(Effect.sleep(millis), { Y: 2 * X, PROCESS }), { instances: 64 }),
  Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => {
    const TOTAL = SUM + VALUE
    return { outputs: { TOTAL, PROCESS }, state: { SUM: TOTAL } }
  }),
)
const options = { http: { host, port: http }, grpc: { host, port: grpc }, metrics: false } as const
const server = await Server.start([Work, Sums], models, options)
process.once("SIGTERM", server.stop)
console.log(`ports ${server.http.port} ${server.grpc.port}`)
