/** `nereid serve <module>`: serves the models that a module exports until it is told to stop. */
import { Server } from "@nereid/server"
import { Console, Effect, Layer, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { banner } from "./Banner.ts"
import * as ForcedExit from "./ForcedExit.ts"
import * as ModelModule from "./ModelModule.ts"

const Port = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65535 }))

const port = (name: string, what: string, fallback: number) =>
  Flag.Int(name).pipe(
    Flag.withSchema(Port),
    Flag.withDescription(`Port of ${what}, 0 for a free one (${fallback})`),
    Flag.withDefault(fallback),
  )

const address = (name: string, what: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`Address for ${what} to listen on (0.0.0.0)`),
    Flag.withDefault("0.0.0.0"),
  )

export const serve = Command.make(
  "serve",
  {
    module: Argument.String("module").pipe(
      Argument.withDescription(
        "A TypeScript or JavaScript module that exports models and the layers that provide them",
      ),
    ),
    httpPort: port("http-port", "HTTP", 8000),
    grpcPort: port("grpc-port", "gRPC", 8001),
    metricsPort: port("metrics-port", "metrics", 8002),
    httpAddress: address("http-address", "HTTP"),
    grpcAddress: address("grpc-address", "gRPC"),
    metricsAddress: address("metrics-address", "metrics"),
    id: Flag.String("id").pipe(Flag.withDescription("The server's name in its metadata"), Flag.optional),
    drainTimeout: Flag.Int("exit-timeout-secs").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
      Flag.withDescription("Seconds that a stop waits for requests in flight (30)"),
      Flag.withDefault(30),
    ),
  },
  Effect.fnUntraced(function* (flags) {
    ForcedExit.install(flags.drainTimeout)
    const module = yield* ModelModule.load(flags.module)
    const models = Layer.effectContext(ModelModule.build(module))
    const served = Server.layer(module.models, {
      http: { host: flags.httpAddress, port: flags.httpPort },
      grpc: { host: flags.grpcAddress, port: flags.grpcPort },
      metrics: { host: flags.metricsAddress, port: flags.metricsPort },
      drainTimeout: `${flags.drainTimeout} seconds`,
      ...(Option.isSome(flags.id) ? { id: flags.id.value } : {}),
    })
    const announced = Layer.effectDiscard(Effect.flatMap(Server.Server, (server) => Console.log(banner(server)))).pipe(
      Layer.provide(served),
    )
    return yield* announced.pipe(Layer.provide(models), Layer.launch)
  }),
).pipe(Command.withDescription("Serve the models that a module exports"))
