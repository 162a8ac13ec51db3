/**
 * Stops that find an answer half sent. Everything else of a listener shows in its front ends: HttpServer.test.ts and
 * others.
 */
import { Agent, request as httpRequest, type ServerResponse } from "node:http"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import * as HttpListener from "./HttpListener.ts"

it.live("an answer that had begun before a stop goes on to its end, and then its connection closes", () =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const started = yield* Deferred.make<ServerResponse>()
    const handler: HttpListener.Http1Handler = (_, response) => {
      response.write("the beginning ")
      Deferred.doneUnsafe(started, Effect.succeed(response))
    }
    const { port } = yield* Scope.provide(
      HttpListener.make(handler, { name: "HTTP", host: "127.0.0.1", port: 0, stopTimeoutMillis: 60_000 }),
      scope,
    )
    const agent = new Agent({ keepAlive: true })
    const reply = yield* Effect.forkChild(
      Effect.callback<string>((resume) => {
        const request = httpRequest({ port, agent }, (response) => {
          let text = ""
          response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
          response.on("end", () => resume(Effect.succeed(text)))
        })
        request.end()
      }),
      { startImmediately: true },
    )
    const response = yield* Deferred.await(started)
    const stopping = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    response.write("and ")
    response.end("the end")
    expect(yield* Fiber.join(reply)).toBe("the beginning and the end")
    yield* Fiber.join(stopping)
    agent.destroy()
  }),
)
