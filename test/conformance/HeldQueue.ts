/** The queue of a model behind a request that is held: who waits there comes in one after the other, until all are let go. */
import { assert } from "@effect/vitest"
import type { Connections } from "./Connections.ts"
import { counters, metric, until } from "./Counters.ts"
import { held } from "./Held.ts"
import type { Outcome, Parameters, Tensor } from "./InferRequest.ts"
import type { Way } from "./Way.ts"

type Connected = Connections["Service"]

/** The model answers with its only input; `x` is that of all requests that bring none of their own. */
export const hold = async (connections: Connected, { ask, server }: Way, model: string, x: Tensor) => {
  const before = await counters(connections, model, server)
  held.executions = []
  const answers: Array<Promise<ReadonlyArray<string>>> = []
  const send = (id: string, parameters: Parameters, input: Tensor, expected: Outcome = { outputs: [input] }) => {
    const answer = ask(connections, { model, id, parameters, inputs: [input] }, expected)
    answers.push(answer)
    return answer
  }
  void send("hold", {}, x)
  await until(() => held.ran.includes("hold"))
  let waiting = 0
  const pending = () => metric(connections, "nv_inference_pending_request_count", model, "", server)
  return {
    refuse: async (id: string, parameters: Parameters, expected: Outcome) => {
      assert.deepStrictEqual(await send(id, parameters, x, expected), [])
    },
    wait: async (id: string, parameters: Parameters = {}, input = x) => {
      void send(id, parameters, input)
      waiting += 1
      await until(async () => (await pending()) === waiting)
    },
    /** Lets them go, and says in which executions they ran, and how many have been refused and served. */
    end: async () => {
      held.letGo()
      assert.deepStrictEqual((await Promise.all(answers)).flat(), [])
      const { reasons, success } = await counters(connections, model, server)
      const [refused = 0] = reasons
      return {
        executions: held.executions.slice(1),
        refused: refused - (before.reasons[0] ?? 0),
        served: success - before.success,
      }
    },
  }
}
