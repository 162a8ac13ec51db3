/** Stops during a response, and pipelining. HttpServer.test.ts and others test a listener through its front ends. */
import { Agent, request as httpRequest, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Queue, Scope } from "effect"
import * as HttpListener from "./HttpListener.ts"
import { converse, exchange } from "./RawHttp.fixture.ts"

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

/** A port whose responses end when the test ends them, in a scope that the test closes. */
const gated = Effect.fnUntraced(function* (stopTimeoutMillis: number) {
  const scope = yield* Scope.make()
  const begun = yield* Queue.unbounded<ServerResponse>()
  const handler: HttpListener.Http1Handler = (_, response) => void Queue.offerUnsafe(begun, response)
  const { port } = yield* Scope.provide(
    HttpListener.make(handler, { name: "HTTP", host: "127.0.0.1", port: 0, stopTimeoutMillis }),
    scope,
  )
  const conversation = yield* converse(port, get)
  const stop = Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
  return { ...conversation, stop, port, respond: Effect.map(Queue.take(begun), (response) => response.end("<answer>")) }
})

const get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n"

it.live("during a stop, a connection gets responses to its next requests until its client is quiet", () =>
  Effect.gen(function* () {
    const { socket, until, closed, stop, port, respond } = yield* gated(60_000)
    yield* respond
    yield* until(/<answer>/)
    const stopping = yield* stop
    for (let request = 2; request <= 5; request++) {
      socket.write(get)
      yield* respond
      yield* until(new RegExp(`(<answer>.*){${request}}`, "s"))
    }
    expect(yield* exchange(port, get)).toBe("")
    expect(yield* closed).not.toMatch(/connection: close/i)
    yield* Fiber.join(stopping)
  }),
)

it.live("at the end of a stop, a response closes the connection of a client that is never quiet", () =>
  Effect.gen(function* () {
    const { socket, until, closed, stop, respond } = yield* gated(1_000)
    yield* respond
    yield* until(/<answer>/)
    const stopping = yield* stop
    socket.write(get)
    socket.on("data", () => {
      socket.write(get)
    })
    yield* Effect.forkChild(Effect.forever(respond))
    expect(yield* closed).toMatch(/<answer>.*Connection: close.*<answer>$/s)
    yield* Fiber.join(stopping)
  }),
)

it.live("of pipelined requests, 16 are handled at a time, and the client waits with the others", () =>
  Effect.gen(function* () {
    const begun: Array<ServerResponse> = []
    const { port } = yield* HttpListener.make(
      (request, response) => {
        if (request.url === "/other") response.end("other")
        else begun.push(response)
      },
      { name: "HTTP", host: "127.0.0.1", port: 0, stopTimeoutMillis: 100 },
    )
    const socket = connect(port, "127.0.0.1")
    yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
    let text = ""
    socket.on("data", (chunk) => (text += String(chunk)))
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1_000))
    yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/other`)).pipe(
      Effect.repeat({ until: () => begun.length > 0 }),
    )
    for (let answered = 0; answered < 1_000; answered++) {
      expect(begun.length - answered).toBeLessThanOrEqual(16)
      while (begun.length === answered) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      begun[answered]?.end(`<${answered}>`)
    }
    while (!text.includes("<999>")) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    expect([...text.matchAll(/<(\d+)>/g)].map(([, index]) => Number(index))).toEqual(
      Array.from({ length: 1_000 }, (_, index) => index),
    )
  }),
)

it.live("the server does not read ahead of the requests that it handles", () =>
  Effect.gen(function* () {
    let handled = 0
    const { port } = yield* HttpListener.make(
      (request, response) => {
        if (request.url === "/") handled += 1
        setImmediate(() => response.end("answer"))
      },
      { name: "HTTP", host: "127.0.0.1", port: 0, stopTimeoutMillis: 100 },
    )
    const socket = connect(port, "127.0.0.1").on("error", () => {})
    yield* Effect.addFinalizer(() => Effect.sync(() => socket.destroy()))
    const count = 2_000_000
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(count))
    socket.resume()
    yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/other`)).pipe(
      Effect.repeat({ until: () => handled > 3_000 }),
    )
    // The client holds all that the server has not read, but for some megabytes in the kernel.
    expect(socket.writableLength).toBeGreaterThan(20_000_000)
  }),
)
