/** How long, how many and how much at most: the limits of the gRPC port, over real connections. */
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { inferFrame, oneByte, rawCall, rawSession, stoppable } from "./GrpcServer.fixture.ts"

it.live.each([Infinity, 2 ** 31])("a stop that may take %d ms cuts nothing off", (stopTimeoutMillis) =>
  Effect.gen(function* () {
    const { server, stop } = yield* stoppable({ stopTimeoutMillis })
    const session = yield* rawSession(server)
    const inFlight = yield* Effect.forkChild(rawCall(session, { chunks: [inferFrame(oneByte("gate"))] }))
    yield* Queue.take(server.started)
    const stopping = yield* Effect.forkChild(stop, { startImmediately: true })
    // Timers fire in their order, and too long ones after 1 ms.
    yield* Effect.sleep(5)
    yield* Deferred.succeed(server.open, undefined)
    expect(yield* Fiber.join(inFlight)).toMatchObject({ status: "0" })
    yield* Fiber.join(stopping)
  }),
)
