/**
 * Batches of repository models that wait for more, and go at once when the queue changes: a request leaves it or loses
 * its place, or the next one cannot join. The delay of these models is longer than any test.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "./Connections.ts"
import { metric, until } from "./Counters.ts"
import { gatedExecution } from "./GatedExecution.ts"
import { inferMethods } from "./InferMethod.ts"
import type { Outcome, Parameters, Tensor } from "./InferRequest.ts"
import { x } from "./StoredQueues.ts"

type Connected = Connections["Service"]

/** Microseconds, as Triton's clients send it. */
const soon = { timeout: 200_000n }

layer(Connections.layerWithQueues, { excludeTestServices: true })("waiting batches of a repository", (it) => {
  const live = (name: string, test: (connections: Connected) => Promise<void>) =>
    it.effect(name, () => Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))))

  for (const method of inferMethods("queues", "queuesConnect")) {
    /** Sends a request; resolves with what differs from the expected response, which by default repeats X. */
    const sender = (connections: Connected, model: string) => {
      gatedExecution.executions = []
      return (id: string, [X, ...others]: readonly [Tensor, ...Array<Tensor>], more: Sent = {}) => {
        const { parameters = {}, expected = { outputs: [X] } } = more
        return method.infer(connections, { model, id, parameters, inputs: [X, ...others] }, expected)
      }
    }

    const pending = (connections: Connected, model: string, count: number) =>
      until(
        async () =>
          (await metric(connections, "nv_inference_pending_request_count", model, "", method.server)) === count,
      )

    live(`${method.name}: 1+2+2 goes as 2+2 once the queue timeout of the first has passed (C36)`, async (servers) => {
      const send = sender(servers, "prefers_four")
      const timedOut = { tag: "QueueTimeout", error: "Request timeout expired" } as const
      const first = send("first", [x(1)], { parameters: soon, expected: timedOut })
      const others = [send("a", [x(2)]), send("b", [x(2)])]
      assert.deepStrictEqual((await Promise.all([first, ...others])).flat(), [])
      assert.deepStrictEqual(
        gatedExecution.executions.map((ids) => ids.toSorted()),
        [["a", "b"]],
      )
    })

    live(`${method.name}: 1+2+2 goes as 2+2 once the first is behind the others (C36)`, async (servers) => {
      const send = sender(servers, "prefers_four_late")
      const first = send("first", [x(1)], { parameters: soon })
      assert.deepStrictEqual((await Promise.all([send("a", [x(2)]), send("b", [x(2)])])).flat(), [])
      const last = send("last", [x(3)])
      assert.deepStrictEqual((await Promise.all([first, last])).flat(), [])
      assert.deepStrictEqual(
        gatedExecution.executions.map((ids) => ids.toSorted()),
        [
          ["a", "b"],
          ["first", "last"],
        ],
      )
    })

    live(`${method.name}: a request of another shape sends off the waiting batch (C36)`, async (servers) => {
      const send = sender(servers, "shapes_wait")
      const one = send("one", [x(1, 1)])
      await pending(servers, "shapes_wait", 1)
      const two = send("two", [x(1, 2)])
      assert.deepStrictEqual(await one, [])
      await pending(servers, "shapes_wait", 1)
      const full = send("full", [x(4, 1)])
      assert.deepStrictEqual((await Promise.all([two, full])).flat(), [])
      assert.deepStrictEqual(gatedExecution.executions, [["one"], ["two"], ["full"]])
    })

    live(`${method.name}: a request with other optional inputs sends off the waiting batch (C36)`, async (servers) => {
      const send = sender(servers, "options_wait")
      const without = send("without", [x(1)])
      await pending(servers, "options_wait", 1)
      const withB = send("with", [x(1), x(1, 1, "B")])
      assert.deepStrictEqual(await without, [])
      await pending(servers, "options_wait", 1)
      assert.deepStrictEqual((await Promise.all([withB, send("full", [x(3), x(3, 1, "B")])])).flat(), [])
      assert.deepStrictEqual(gatedExecution.executions, [["without"], ["with", "full"]])
    })
  }
})

interface Sent {
  readonly parameters?: Parameters
  readonly expected?: Outcome
}
