/** The child side: a process that serves one version of the module, run by a supervisor. */
import { PortSource } from "@nereid/server/internal/port/PortSource"
import { Server } from "@nereid/server"
import { Effect, Layer } from "effect"
import { ReceivedPorts } from "./ReceivedPorts.ts"
import * as Supervision from "./Supervision.ts"

/** Replaces the ports of a server by those of the supervisor, and obeys the supervisor. `stop` takes the reason. */
export const layer = (stop: (reason: string) => void): Layer.Layer<never> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const ports = new ReceivedPorts()
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          Supervision.onMessage((message, socket) => {
            if (message.type === "replaced") {
              void ports.settled().then(() => stop("because a new version has replaced this one"))
            } else if (message.type === "signal") process.emit(message.signal, message.signal)
            else ports.receive(message, socket)
          }),
        ),
        (off) => Effect.sync(off),
      )
      yield* Effect.acquireRelease(
        Effect.sync(() => Supervision.onEnded(() => stop("because its supervisor has ended"))),
        (off) => Effect.sync(off),
      )
      return Layer.succeed(PortSource, ports.open)
    }),
  )

/** Tells the supervisor that the server accepts requests. */
export const ready: Layer.Layer<never, never, Server.Server> = Layer.effectDiscard(
  Effect.map(Server.Server, () => Supervision.send({ type: "ready" })),
)
