/** An instance whose model takes and gives other shapes than its clients see. */
import { Exit, Result } from "effect"
import { type Instance, wrapInstance } from "@nereid/core/internal/instance/Instance"
import type { Reshapes } from "@nereid/core/internal/tensor/Reshape"

export const make = (instance: Instance, reshapes: Reshapes): Instance =>
  wrapInstance(instance, (batch, settle) => {
    const requests = batch.requests.map((request) => ({
      ...request,
      inputs: request.inputs.map((tensor, index) => tensor && reshapes.inputs(tensor, index)),
    }))
    return instance.execute({ ...batch, requests }, (exit) =>
      settle(
        Exit.map(exit, (execution) => ({
          ...execution,
          outcomes: execution.outcomes.map((outcome) =>
            Result.map(outcome, (response) => ({
              ...response,
              outputs: response.outputs.map((tensor, index) => tensor && reshapes.outputs(tensor, index)),
            })),
          ),
        })),
      ),
    )
  })
