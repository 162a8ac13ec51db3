/** Priorities, times in the queue and the order of answers, over every way in: who goes first, who is refused, with what. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { compareGrpc, compareHttp, compareStream } from "./Answer.ts"
import { Connections } from "./Connections.ts"
import { counters, metric, until } from "./Counters.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import { type InferRequest, type Outcome, type Parameters, tensor } from "./InferRequest.ts"
import * as Models from "./Models.ts"

type Connected = Connections["Service"]

/** Sends a request at once, and says what its answer has that it should not. */
type Ask = (connections: Connected, request: InferRequest, expected: Outcome) => Promise<ReadonlyArray<string>>

const overHttp =
  (encoding: "HTTP JSON" | "HTTP binary"): Ask =>
  async ({ servers }, request, expected) => {
    // A connection answers in the order in which it was asked.
    const connection = await HttpConnection.open(servers.normal.http)
    const answer = await connection.request(encodeHttp(request, encoding))
    connection.close()
    return compareHttp(request, expected, answer)
  }

const overGrpc =
  (server: "normal" | "connect"): Ask =>
  async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    return compareGrpc(request, expected, await connection.call({ chunks: [encodeGrpc(request, "gRPC raw")] }))
  }

const overStream =
  (server: "normal" | "connect"): Ask =>
  async (connections, request, expected) => {
    const connection = await connections.grpc(server)
    const call = { method: "ModelStreamInfer", chunks: [encodeGrpc(request, "gRPC stream")] }
    return compareStream(request, expected, await connection.call(call))
  }

const ways: ReadonlyArray<readonly [string, Ask]> = [
  ["HTTP JSON", overHttp("HTTP JSON")],
  ["HTTP binary", overHttp("HTTP binary")],
  ["gRPC", overGrpc("normal")],
  ["gRPC through Connect", overGrpc("connect")],
  ["gRPC stream", overStream("normal")],
  ["gRPC stream through Connect", overStream("connect")],
]

const x = tensor("X", "INT32", [1], [7])

const answered: Outcome = { outputs: [x] }

const timedOut: Outcome = { tag: "QueueTimeout", error: "Request timeout expired" }

/** Asks one after another, so that they wait in that order behind one that is held. */
const line = async (connections: Connected, ask: Ask, model: string) => {
  const before = await counters(connections, model)
  Models.held.ran = []
  const answers: Array<Promise<ReadonlyArray<string>>> = []
  const send = (id: string, parameters: Parameters, expected: Outcome) => {
    const answer = ask(connections, { model, id, parameters, inputs: [x] }, expected)
    answers.push(answer)
    return answer
  }
  void send("hold", {}, answered)
  await until(() => Models.held.ran.includes("hold"))
  let waiting = 0
  return {
    refuse: async (id: string, parameters: Parameters, expected: Outcome) => {
      assert.deepStrictEqual(await send(id, parameters, expected), [])
    },
    wait: async (id: string, parameters: Parameters) => {
      void send(id, parameters, answered)
      waiting += 1
      await until(async () => (await metric(connections, "nv_inference_pending_request_count", model)) === waiting)
    },
    /** Lets them go, and says in which order they ran, and how many have been refused and served. */
    end: async () => {
      Models.held.letGo()
      assert.deepStrictEqual((await Promise.all(answers)).flat(), [])
      const { reasons, success } = await counters(connections, model)
      const [refused = 0] = reasons
      return {
        ran: Models.held.ran.slice(1),
        refused: refused - (before.reasons[0] ?? 0),
        served: success - before.success,
      }
    },
  }
}

layer(Connections.layer, { excludeTestServices: true })("queues", (it) => {
  const live = (name: string, test: (connections: Connected) => Promise<void>) =>
    it.effect(name, () => Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))))

  for (const [way, ask] of ways) {
    live(`${way}: the highest level goes first, and each has its own room (C36)`, async (connections) => {
      const { wait, refuse, end } = await line(connections, ask, "levels")
      await wait("low", { priority: 3n })
      await wait("default", {})
      await wait("zero", { priority: 0n })
      await wait("none such", { priority: 4n })
      await wait("high", { priority: 1n })
      const error = "Exceeds maximum queue size"
      await refuse("second", { priority: 1n }, { tag: "QueueFull", error: `[request id: second] ${error}` })
      await wait("largest", { priority: 2n ** 63n - 1n })
      await refuse("fifth", {}, { tag: "QueueFull", error: `[request id: fifth] ${error}` })
      const ran = ["high", "default", "zero", "none such", "largest", "low"]
      assert.deepStrictEqual(await end(), { ran, refused: 2, served: 7 })
    })

    live(`${way}: a request whose time in the queue is over is refused (C36)`, async (connections) => {
      const { wait, refuse, end } = await line(connections, ask, "levels")
      await wait("patient", { timeout: 2n ** 63n - 1n })
      await refuse("hasty", { timeout: 2_000n }, timedOut)
      // The policy of this level lets nobody shorten its time.
      await wait("high", { priority: 1n, timeout: 1n })
      assert.deepStrictEqual(await end(), { ran: ["high", "patient"], refused: 1, served: 3 })
    })

    live(`${way}: or goes behind the others, where the model says so`, async (connections) => {
      const { wait, end } = await line(connections, ask, "delays")
      await wait("late", { timeout: 1n })
      await wait("patient", { priority: 1n })
      await wait("no time", { timeout: 0n })
      assert.deepStrictEqual(await end(), { ran: ["patient", "no time", "late"], refused: 0, served: 4 })
    })

    live(`${way}: answers leave in the order of their requests, where the model says so`, async (connections) => {
      const answers = () => metric(connections, "nv_inference_request_success", "ordered")
      const before = await answers()
      const told: Array<string> = []
      Models.held.ran = []
      const send = async (id: string) => {
        const found = await ask(connections, { model: "ordered", id, inputs: [x] }, answered)
        told.push(id)
        return found
      }
      const all = [send("hold")]
      await until(() => Models.held.ran.includes("hold"))
      all.push(send("second"))
      await until(async () => (await answers()) > before)
      assert.deepStrictEqual(told, [])
      Models.held.letGo()
      assert.deepStrictEqual((await Promise.all(all)).flat(), [])
    })
  }
})
