/**
 * The steps of an ensemble as a graph over its tensors, with the models that execute them. Pure: EnsembleRequest.ts
 * executes requests. Models and steps were checked for compatibility before.
 *
 *   tensors of the request ─► step ─► tensor ─┬─► step ─► output
 *                               └──► tensor ──┘
 *
 * A decoupled step produces its tensors any number of times, and the steps that depend on them run as often. Each
 * response opens a level below that of the step. Level 0 is the request itself.
 */
import { Result } from "effect"
import type { RunningModel } from "../running/RunningModel.ts"
import * as Reshape from "../tensor/Reshape.ts"
import type { Signature } from "../tensor/TensorSpec.ts"

export interface EnsembleStep {
  /** The name of its model. */
  readonly model: string
  /** Of the model; empty for its highest. */
  readonly version: string
  /** From inputs of the model to the tensors that they are. */
  readonly inputs: ReadonlyMap<string, string>
  /** From outputs of the model to the tensors that they become. */
  readonly outputs: ReadonlyMap<string, string>
}

/** The declaration of an ensemble: the contract that clients see, and the steps. */
export interface EnsembleDefinition {
  readonly name: string
  readonly signature: Signature
  /** The signature in the shapes that its steps have; the same object if no tensor is reshaped. */
  readonly inner: Signature
  readonly maxBatchSize: number
  readonly steps: ReadonlyArray<EnsembleStep>
}

export interface LinkedStep {
  readonly model: RunningModel
  /** The tensor of each of its inputs, by their positions in the signature; -1 for one that is always left out. */
  readonly inputs: ReadonlyArray<number>
  /** The tensor that each of its outputs becomes; -1 for one that nothing needs. */
  readonly outputs: ReadonlyArray<number>
  /** Names of the outputs that something needs; empty for all. */
  readonly requestedOutputs: ReadonlyArray<string>
  /** Tensors that it waits for. */
  readonly needs: ReadonlyArray<number>
  readonly level: number
}

export interface EnsembleGraph {
  readonly definition: EnsembleDefinition
  /** Between the shapes of its callers and those of its steps. */
  readonly reshapes: Reshape.Reshapes
  readonly steps: ReadonlyArray<LinkedStep>
  /** Whether a tensor has a batch dimension, by tensor; those of the ensemble's inputs come first, in their order. */
  readonly batched: ReadonlyArray<boolean>
  readonly levels: ReadonlyArray<number>
  /** The steps that wait for a tensor, by tensor. */
  readonly waiting: ReadonlyArray<ReadonlyArray<LinkedStep>>
  /** The tensor of each output, by their positions in the signature; -1 for one that was not requested. */
  readonly outputs: ReadonlyArray<number>
  /** The level at which the outputs are all there. */
  readonly depth: number
}

/**
 * Links the graph with `models`, one for each step, in their order. Every tensor must be an input of the ensemble or
 * the output of one step, without cycles. Fails if tensors of several decoupled steps would have to be joined.
 */
export const link = (
  definition: EnsembleDefinition,
  models: ReadonlyArray<RunningModel>,
): Result.Result<EnsembleGraph, string> => {
  const { name, signature, maxBatchSize, steps } = definition
  const positions = new Map<string, number>()
  const batched: Array<boolean> = []
  /** The decoupled steps that a tensor comes from, the outermost first; undefined as long as it is not known. */
  const origins: Array<ReadonlyArray<number> | undefined> = []
  const positionOf = (tensor: string): number => {
    const position = positions.get(tensor) ?? positions.size
    positions.set(tensor, position)
    return position
  }
  for (const { name } of signature.inputs) {
    const position = positionOf(name)
    batched[position] = maxBatchSize > 0
    origins[position] = []
  }
  const unlevelled = steps.flatMap((step, index) => {
    const model = models[index]
    if (model === undefined) return []
    const inputs = model.description.signature.inputs.map(({ name }) =>
      positionOrNone(step.inputs.get(name), positionOf),
    )
    const outputs = model.description.signature.outputs.map(({ name }) =>
      positionOrNone(step.outputs.get(name), positionOf),
    )
    for (const position of outputs) if (position >= 0) batched[position] = model.description.maxBatchSize > 0
    const needs = [...new Set(inputs)].filter((position) => position >= 0)
    const requestedOutputs = outputs.includes(-1) ? [...step.outputs.keys()] : []
    return [{ index, model, inputs, outputs, needs, requestedOutputs }]
  })
  const mixedOrigins = (receiver: string) =>
    `in ensemble ${name}, step of model '${receiver}' receives inputs originated from different decoupled models`

  const linked: Array<LinkedStep> = []
  let left = unlevelled
  while (left.length > 0) {
    const next = left.filter(({ needs }) => needs.every((position) => origins[position] !== undefined))
    for (const { index, ...step } of next) {
      const origin = longestOrigin(step.needs.map((position) => origins[position] ?? []))
      if (origin === undefined) return Result.fail(mixedOrigins(step.model.description.name))
      for (const position of step.outputs) origins[position] = step.model.calls.decoupled ? [...origin, index] : origin
      linked.push({ ...step, level: origin.length })
    }
    if (next.length === 0) break
    left = left.filter((step) => !next.includes(step))
  }
  const outputs = signature.outputs.map(({ name }) => positionOf(name))
  if (longestOrigin(outputs.map((position) => origins[position] ?? [])) === undefined)
    return Result.fail(mixedOrigins(name))
  const levels = Array.from({ length: positions.size }, (_, position) => origins[position]?.length ?? 0)
  return Result.succeed(graph(definition, linked, batched, levels, outputs))
}

/** Without the steps that only others of its outputs need. */
export const pruned = (full: EnsembleGraph, requestedOutputs: ReadonlyArray<string>): EnsembleGraph => {
  const outputs = full.definition.signature.outputs.map(({ name }, position) =>
    requestedOutputs.includes(name) ? (full.outputs[position] ?? -1) : -1,
  )
  const needed = new Set(outputs)
  // The steps stand in the order in which they can be executed.
  const steps = full.steps.toReversed().filter((step) => {
    const isNeeded = step.outputs.some((position) => position >= 0 && needed.has(position))
    if (isNeeded) for (const position of step.needs) needed.add(position)
    return isNeeded
  })
  return graph(full.definition, steps.toReversed(), full.batched, full.levels, outputs)
}

const graph = (
  definition: EnsembleDefinition,
  steps: ReadonlyArray<LinkedStep>,
  batched: ReadonlyArray<boolean>,
  levels: ReadonlyArray<number>,
  outputs: ReadonlyArray<number>,
): EnsembleGraph => ({
  definition,
  reshapes: Reshape.make(definition.signature, definition.inner, definition.maxBatchSize > 0),
  steps,
  batched,
  levels,
  waiting: levels.map((_, position) => steps.filter(({ needs }) => needs.includes(position))),
  outputs,
  depth: Math.max(0, ...outputs.map((position) => levels[position] ?? 0)),
})

const positionOrNone = (tensor: string | undefined, positionOf: (tensor: string) => number): number =>
  tensor === undefined ? -1 : positionOf(tensor)

/** The longest of them, where each of the others is how it begins. */
const longestOrigin = (origins: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> | undefined => {
  const longest = origins.reduce((one, other) => (other.length > one.length ? other : one), [])
  return origins.every((origin) => origin.every((step, index) => step === longest[index])) ? longest : undefined
}
