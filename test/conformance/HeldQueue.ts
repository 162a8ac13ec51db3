/**
 * The queue of a model behind a request that is held: requests are queued one after the other, until all are released.
 */
import { assert } from "@effect/vitest"
import type { Connections } from "./Connections.ts"
import { counters, metric, until } from "./Counters.ts"
import { gatedExecution } from "./GatedExecution.ts"
import type { Outcome, Parameters, Tensor } from "./InferRequest.ts"
import type { InferMethod } from "./InferMethod.ts"

type Connected = Connections["Service"]

/** The model returns its only input; `x` is the default input of requests. */
export const hold = async (connections: Connected, { infer, server }: InferMethod, model: string, x: Tensor) => {
  const before = await counters(connections, model, server)
  gatedExecution.executions = []
  const responses: Array<Promise<ReadonlyArray<string>>> = []
  const send = (id: string, parameters: Parameters, input: Tensor, expected: Outcome = { outputs: [input] }) => {
    const response = infer(connections, { model, id, parameters, inputs: [input] }, expected)
    responses.push(response)
    return response
  }
  void send("hold", {}, x)
  await until(() => gatedExecution.ran.includes("hold"))
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
    /** Releases them; returns their executions, and the numbers of refused and served requests. */
    end: async () => {
      gatedExecution.open()
      assert.deepStrictEqual((await Promise.all(responses)).flat(), [])
      const { reasons, success } = await counters(connections, model, server)
      const [refused = 0] = reasons
      return {
        executions: gatedExecution.executions.slice(1),
        refused: refused - (before.reasons[0] ?? 0),
        served: success - before.success,
      }
    },
  }
}
