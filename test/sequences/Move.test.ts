/** Live sequences that go from one server to another, over real sockets. */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import type { Server } from "@nereid/server"
import { type Scenario, step } from "./Scenario.ts"
import { type Ports, transports } from "./SequenceCalls.ts"
import * as SequenceServer from "./SequenceServer.ts"

const accumulator: Scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: 60_000_000, steps: [], sizes: {} }

/** Stops without waiting for open sequences, unless it hands them over. */
const serve = (scenario: Scenario, { server }: { readonly server?: Server.ServerOptions } = {}) => {
  const drainTimeout = server?.handOverSequences === undefined ? "0 seconds" : "30 seconds"
  return SequenceServer.serve(scenario, { server: { drainTimeout, ...server } })
}

const [, send] = transports(4).find(([name]) => name.toLowerCase().includes("http")) ?? []

const sendOne = (ports: Ports, ...args: Parameters<typeof step>) =>
  Effect.promise(async () => (await send?.(ports, "m", [step(...args)]))?.[0])

const http = (ports: Ports, path: string, body?: string, headers = {}) =>
  Effect.promise(async () => {
    const init = body === undefined ? {} : { method: "POST", body, headers }
    const response = await fetch(`http://127.0.0.1:${ports.http}/v2/models/${path}`, init)
    return { status: response.status, headers: response.headers, json: JSON.parse(await response.text()) }
  })

const exported = (ports: Ports, selection = "") => http(ports, "m/sequences/export", selection)

const imported = (ports: Ports, document: object) =>
  Effect.map(http(ports, "m/sequences/import", JSON.stringify(document)), ({ status, json }) => ({ status, json }))

const body = (id: number | string, input: number) =>
  JSON.stringify({
    parameters: { sequence_id: id },
    inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [input] }],
  })

/** Two servers with the same model. */
const two = Effect.gen(function* () {
  return { one: yield* serve(accumulator), other: yield* serve(accumulator) }
})

it.live("a sequence that began on one server goes on on another", () =>
  Effect.gen(function* () {
    const { one, other } = yield* two
    yield* sendOne(one, 7n, "S", 1, 1)
    yield* sendOne(one, "seven", "S", 10, 10)
    expect(yield* sendOne(one, 7n, "", 2, 3)).toBe(3)
    const list = yield* http(one, "m/sequences")
    expect(list.json).toEqual({
      model: "m",
      version: "1",
      live: 2,
      backlog: 0,
      state_bytes: 8,
      movable: true,
      sequences: [
        { id: "7", datatype: "UINT64" },
        { id: "seven", datatype: "BYTES" },
      ],
    })
    const { json } = yield* exported(one)
    expect(json).toMatchObject({
      format: 1,
      model: "m",
      states: "batch:INPUT_STATE>OUTPUT_STATE:INT32[1]",
      sequences: [
        { id: "7", datatype: "UINT64", state: [{ datatype: "INT32", shape: [1, 1], data: "AwAAAA==" }] },
        { id: "seven", datatype: "BYTES" },
      ],
      remaining: 0,
    })
    const lost = yield* http(one, "m/infer", body(7, 1))
    expect([lost.status, lost.headers.get("nereid-error-detail")]).toEqual([400, '{"reason":"moved"}'])
    expect(yield* imported(other, json)).toEqual({ status: 200, json: { imported: 2, refused: [] } })
    expect(yield* sendOne(other, 7n, "E", 3, 6)).toBe(6)
    expect(yield* sendOne(other, "seven", "E", 1, 11)).toBe(11)
  }),
)

it.live("an export takes the chosen sequences only", () =>
  Effect.gen(function* () {
    const one = yield* serve(accumulator)
    for (const id of [1n, 2n, 3n]) yield* sendOne(one, id, "S", 1, 1)
    const ids = JSON.stringify({ ids: [{ id: "2", datatype: "UINT64" }, { id: "none" }], wait_ms: 100 })
    const { json } = yield* exported(one, ids)
    expect(json).toMatchObject({ sequences: [{ id: "2" }], remaining: 2 })
    expect(yield* sendOne(one, 3n, "E", 1, 2)).toBe(2)
  }),
)

it.live("an import refuses a live id, and takes the others", () =>
  Effect.gen(function* () {
    const { one, other } = yield* two
    for (const id of [1n, 2n]) yield* sendOne(one, id, "S", 5, 5)
    yield* sendOne(other, 1n, "S", 100, 100)
    const { json } = yield* exported(one)
    expect((yield* imported(other, json)).json).toEqual({
      imported: 1,
      refused: [{ id: "1", datatype: "UINT64", kind: "AlreadyExists", error: "sequence 1 of model 'm' is live" }],
    })
    expect(yield* sendOne(other, 1n, "E", 1, 101)).toBe(101)
    expect(yield* sendOne(other, 2n, "E", 1, 6)).toBe(6)
  }),
)

it.live("an import refuses other models, wrong states and bodies that cannot be read", () =>
  Effect.gen(function* () {
    const { one, other } = yield* two
    yield* sendOne(one, 1n, "S", 5, 5)
    const { json } = yield* exported(one)
    const errorOf = (document: object) =>
      Effect.map(imported(other, document), ({ status, json }) => [status, json.error])
    expect(yield* errorOf({ ...json, model: "n" })).toEqual([400, "exported sequences have model 'n', expected 'm'"])
    expect(yield* errorOf({ ...json, format: 2 })).toEqual([400, "exported sequences have format '2', expected '1'"])
    expect((yield* errorOf({ ...json, sequences: [{ id: "0", datatype: "UINT64" }] }))[0]).toBe(400)
    expect((yield* errorOf({ format: 1 }))[0]).toBe(400)
    const short = { id: "1", state: [{ datatype: "INT32", shape: [1, 1], data: "AwA=" }] }
    expect((yield* imported(other, { ...json, sequences: [short] })).json).toMatchObject({
      imported: 0,
      refused: [{ error: "sequence 1 of model 'm' state 'INPUT_STATE': expected 4 bytes for INT32[1,1], got 2" }],
    })
    expect((yield* http(other, "none/sequences")).status).toBe(404)
    expect((yield* exported(other, '{"wait_ms":600000}')).json.error).toBe("wait_ms must be at most 60000, got 600000")
  }),
)

it.live("an import has the limits of a body, and the restriction of the model repository", () =>
  Effect.gen(function* () {
    const restricted = { http: [{ apis: ["model-repository" as const], key: "secret", value: "x" }] }
    const one = yield* serve(accumulator, { server: { maxInputSize: 100, restrictedApis: restricted } })
    expect((yield* http(one, "m/sequences")).status).toBe(403)
    expect((yield* http(one, "m/sequences/export", "")).status).toBe(403)
    const large = yield* http(one, "m/sequences/import", " ".repeat(200), { secret: "x" })
    expect([large.status, large.json.error]).toEqual([400, expect.stringContaining("the maximum allowed input size")])
  }),
)

it.live("a model that keeps its state itself is not exported", () =>
  Effect.gen(function* () {
    const one = yield* serve({ ...accumulator, behaviour: "flags" })
    yield* sendOne(one, 1n, "S", 1, 2)
    expect((yield* http(one, "m/sequences")).json).toMatchObject({ live: 1, movable: false })
    const refused = yield* exported(one)
    expect([refused.status, refused.json.error]).toEqual([
      501,
      "sequences of model 'm' cannot be moved: it declares no state tensors, so its state is unknown",
    ])
    expect(yield* sendOne(one, 1n, "E", 1, 1)).toBe(1)
  }),
)

it.live("a stopping server hands over its sequences, and each request is answered or told that they have moved", () =>
  Effect.gen(function* () {
    const many: Scenario = { ...accumulator, fields: "oldest { max_candidate_sequences: 64 }" }
    const other = yield* serve(many)
    const scope = yield* Scope.make()
    const url = `http://127.0.0.1:${other.http}`
    const one = yield* Scope.provide(serve(many, { server: { handOverSequences: { url } } }), scope)
    const ids = Array.from({ length: 50 }, (_, index) => BigInt(index + 1))
    for (const id of ids) yield* sendOne(one, id, "S", 1, 1)
    /** Adds 1 again and again, on the first server until it moves, then on the other. */
    const user = Effect.fnUntraced(function* (id: bigint) {
      let sum = 1
      let ports = one
      while (sum < 20 || ports === one) {
        const answer = yield* sendOne(ports, id, "", 1, 0).pipe(Effect.catchCause(() => Effect.succeed("closed")))
        if (typeof answer === "number") expect(answer).toBe(++sum)
        else {
          expect(ports).toBe(one)
          expect(String(answer)).toMatch(/must specify the START flag|closed/)
          ports = other
        }
      }
      return ports === other
    })
    const users = yield* Effect.forkChild(
      Effect.forEach(ids, (id) => user(id), { concurrency: "unbounded" }),
      { startImmediately: true },
    )
    yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    expect(new Set(yield* Fiber.join(users))).toEqual(new Set([true]))
    expect((yield* http(other, "m/sequences")).json.live).toBe(50)
  }),
)

it.live("a stop waits for the sequences where the other server is down", () =>
  Effect.gen(function* () {
    const gone = yield* Scope.make()
    const { http: port } = yield* Scope.provide(serve(accumulator), gone)
    yield* Scope.close(gone, Exit.void)
    const scope = yield* Scope.make()
    const handOverSequences = { url: `127.0.0.1:${port}` }
    const one = yield* Scope.provide(serve(accumulator, { server: { handOverSequences } }), scope)
    yield* sendOne(one, 1n, "S", 1, 1)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    expect(yield* sendOne(one, 1n, "", 1, 2)).toBe(2)
    expect(yield* sendOne(one, 1n, "E", 1, 3)).toBe(3)
    yield* Fiber.join(stopped)
  }),
)

it.live("a sequence that the other server refuses ends on the stopping one", () =>
  Effect.gen(function* () {
    const other = yield* serve(accumulator)
    yield* sendOne(other, 1n, "S", 100, 100)
    const scope = yield* Scope.make()
    const handOverSequences = { url: `http://127.0.0.1:${other.http}` }
    const one = yield* Scope.provide(serve(accumulator, { server: { handOverSequences } }), scope)
    for (const id of [1n, 2n]) yield* sendOne(one, id, "S", 5, 5)
    const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* Effect.repeat(http(other, "m/sequences"), { until: ({ json }) => json.live === 2 })
    expect(yield* sendOne(one, 1n, "E", 1, 6)).toBe(6)
    yield* Fiber.join(stopped)
    expect(yield* sendOne(other, 2n, "E", 1, 6)).toBe(6)
    expect(yield* sendOne(other, 1n, "E", 1, 101)).toBe(101)
  }),
)

const restricted = { http: [{ apis: ["model-repository"], key: "admin-key", value: "s3cret" }] } as const

it.live.each([
  ["without its secret", {}, false],
  ["with another secret", { "admin-key": "secret" }, false],
  ["with its secret", { "Admin-Key": "s3cret" }, true],
] as const)(
  "a server that restricts its repository is handed sequences only with its secret: %s",
  ([, headers, taken]) =>
    Effect.gen(function* () {
      const other = yield* serve(accumulator, { server: { restrictedApis: restricted } })
      const scope = yield* Scope.make()
      const handOverSequences = { url: `http://127.0.0.1:${other.http}`, headers }
      const one = yield* Scope.provide(serve(accumulator, { server: { handOverSequences } }), scope)
      expect(yield* sendOne(one, 1n, "S", 5, 5)).toBe(5)
      const stopped = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      if (taken) yield* Fiber.join(stopped)
      else {
        // It goes on here, and the stop waits for it.
        expect(yield* sendOne(one, 1n, "", 1, 6)).toBe(6)
        expect(yield* sendOne(one, 1n, "E", 1, 7)).toBe(7)
        yield* Fiber.join(stopped)
      }
      const lost = "inference request for sequence 1 to model 'm' must specify the START flag"
      expect(yield* sendOne(other, 1n, "E", 2, 7)).toEqual(taken ? 7 : expect.stringContaining(lost))
    }),
)

it.live.each([
  [{ url: "grpc://b:8001" }, "sequences are handed over by HTTP, not by gRPC"],
  [{ url: "http://b:8000", headers: { "admin key": "s3cret" } }, 'handOverSequences: invalid header "admin key"'],
  [{ url: "http://b:8000", headers: { key: "s3cret\nx: y" } }, 'handOverSequences: invalid header "key"'],
] as const)("a server does not start with %j", ([handOverSequences, message]) =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(serve(accumulator, { server: { handOverSequences } }))
    expect(error).toMatchObject({ message })
  }),
)
