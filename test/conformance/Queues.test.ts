/**
 * Priorities, queue timeouts and response order, of models in code and of a repository, over every encoding: the order
 * of execution, and rejections.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "./Connections.ts"
import { metric, until } from "./Counters.ts"
import { gatedExecution } from "./GatedExecution.ts"
import { hold } from "./HeldQueue.ts"
import { type Outcome, tensor } from "./InferRequest.ts"
import { inferMethods } from "./InferMethod.ts"

type Connected = Connections["Service"]

/** The same models, in code without a batch dimension; of each, the ways in and the input of all requests. */
const all = [
  ...inferMethods("normal", "connect").map((method) => ({
    method,
    where: "in code",
    x: tensor("X", "INT32", [1], [7]),
  })),
  ...inferMethods("queues", "queuesConnect").map((method) => ({
    method,
    where: "of a repository",
    x: tensor("X", "INT32", [1, 1], [7]),
  })),
]

const timedOut: Outcome = { tag: "QueueTimeout", error: "Request timeout expired" }

const full = (id: string): Outcome => ({
  tag: "QueueFull",
  error: `[request id: ${id}] Exceeds maximum queue size`,
})

const single = (...ids: ReadonlyArray<string>) => ids.map((id) => [id])

layer(Connections.layerWithQueues, { excludeTestServices: true })("queues", (it) => {
  for (const { method, where, x } of all) {
    const live = (name: string, test: (connections: Connected) => Promise<void>) =>
      it.effect(`${where}, ${method.name}: ${name}`, () =>
        Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))),
      )

    // A11.batching.levels@both, A11.batching.default-level@both, A11.batching.policy.level@both,
    // A11.batching.policy.size@both, A12.priority@both
    live("the highest level goes first, and each has its own room (C36)", async (connections) => {
      const { wait, refuse, end } = await hold(connections, method, "levels", x)
      await wait("low", { priority: 3n })
      await wait("default")
      await wait("zero", { priority: 0n })
      await wait("none such", { priority: 5n })
      await wait("high", { priority: 1n })
      await refuse("second", { priority: 1n }, full("second"))
      await wait("largest", { priority: 2n ** 63n - 1n })
      await refuse("fifth", {}, full("fifth"))
      const executions = single("high", "default", "zero", "none such", "largest", "low")
      assert.deepStrictEqual(await end(), { executions, refused: 2, served: 7 })
    })

    // A11.batching.policy.reject@both, A11.batching.policy.override@both, A12.timeout@both
    live("a request whose time in the queue is over is refused (C36)", async (connections) => {
      const { wait, refuse, end } = await hold(connections, method, "levels", x)
      await wait("patient", { timeout: 2n ** 63n - 1n })
      await refuse("hasty", { timeout: 2_000n }, timedOut)
      // The policy of this level does not allow a shorter timeout.
      await wait("high", { priority: 1n, timeout: 1n })
      assert.deepStrictEqual(await end(), { executions: single("high", "patient"), refused: 1, served: 3 })
    })

    // A11.batching.policy.timeout@both, A12.timeout@both
    live("a timeout above the limit, or of 0, does not extend the limit (C36)", async (connections) => {
      const { refuse, end } = await hold(connections, method, "levels", x)
      await refuse("default", { priority: 4n }, timedOut)
      await refuse("more", { priority: 4n, timeout: 2n ** 62n }, timedOut)
      await refuse("none", { priority: 4n, timeout: 0n }, timedOut)
      assert.deepStrictEqual(await end(), { executions: [], refused: 3, served: 1 })
    })

    // A11.batching.policy.delay@both, A11.batching.policy.level@both
    live("where its level delays, it goes behind the others of that level alone (C36)", async (connections) => {
      const { wait, refuse, end } = await hold(connections, method, "levels", x)
      await wait("late", { priority: 3n, timeout: 1n })
      await wait("patient", { priority: 3n })
      await refuse("refused", { priority: 2n, timeout: 1n }, timedOut)
      await wait("later", { priority: 2n })
      assert.deepStrictEqual(await end(), { executions: single("later", "patient", "late"), refused: 1, served: 4 })
    })

    live("or goes behind all others, where the model says so (C36)", async (connections) => {
      const { wait, end } = await hold(connections, method, "delays", x)
      await wait("late", { timeout: 1n })
      await wait("patient", { priority: 1n })
      await wait("no time", { timeout: 0n })
      const executions = single("patient", "no time", "late")
      assert.deepStrictEqual(await end(), { executions, refused: 0, served: 4 })
    })

    // A11.batching.ordering@both
    live("answers leave in the order of their requests, where the model says so", async (connections) => {
      const responses = () => metric(connections, "nv_inference_request_success", "ordered", "", method.server)
      const before = await responses()
      const received: Array<string> = []
      gatedExecution.executions = []
      const send = async (id: string) => {
        const found = await method.infer(connections, { model: "ordered", id, inputs: [x] }, { outputs: [x] })
        received.push(id)
        return found
      }
      const all = [send("hold")]
      await until(() => gatedExecution.ran.includes("hold"))
      all.push(send("second"))
      await until(async () => (await responses()) > before)
      assert.deepStrictEqual(received, [])
      gatedExecution.open()
      assert.deepStrictEqual((await Promise.all(all)).flat(), [])
    })
  }
})
