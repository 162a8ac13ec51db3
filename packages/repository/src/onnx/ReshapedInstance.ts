/** An instance whose model takes and gives other shapes than its clients see. */
import { Exit, Result } from "effect"
import { type Instance, wrapInstance } from "@nereid/core/internal/instance/Instance"
import type { Request, Response } from "@nereid/core/internal/request/Request"
import type { Reshapes } from "@nereid/core/internal/tensor/Reshape"

export const make = (instance: Instance, reshapes: Reshapes): Instance => {
  const inner = (request: Request): Request => {
    const { inputs, emit } = request
    const reshaped = { ...request, inputs: inputs.map((tensor, index) => tensor && reshapes.inputs(tensor, index)) }
    return emit === undefined ? reshaped : { ...reshaped, emit: (response, isLast) => emit(outer(response), isLast) }
  }
  const outer = (response: Response): Response => {
    const { outputs, rest } = response
    const reshaped = { ...response, outputs: outputs.map((tensor, index) => tensor && reshapes.outputs(tensor, index)) }
    if (rest === undefined) return reshaped
    return { ...reshaped, rest: (reply) => rest((outcome) => reply(Result.map(outcome, outer))) }
  }
  return wrapInstance(instance, (batch, settle) =>
    instance.execute({ ...batch, requests: batch.requests.map(inner) }, (exit) =>
      settle(
        Exit.map(exit, (execution) => ({
          ...execution,
          outcomes: execution.outcomes.map((outcome) => Result.map(outcome, outer)),
        })),
      ),
    ),
  )
}
