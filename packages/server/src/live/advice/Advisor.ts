/** Derives advice from the last steps. Pure; the rules are in the other files of this folder. */
import type { Advice } from "@nereid/dashboard/internal/live/Advice"
import * as BatchRules from "./BatchRules.ts"
import * as LoadWindow from "./LoadWindow.ts"
import * as ProcessRules from "./ProcessRules.ts"
import * as RequestRules from "./RequestRules.ts"
import type { ModelRule } from "./Rule.ts"

/** Steps of the window. */
export const maxSteps = 30

/** Steps from which there is any advice. */
const minSteps = 5

/** Pieces of advice at a time. */
const maxAdvice = 50

/** Of each group, at most the first rule that applies to a model. */
const groups: ReadonlyArray<ReadonlyArray<ModelRule>> = [
  [BatchRules.noBatching, BatchRules.fullBatches, BatchRules.smallBatches, BatchRules.saturated],
  [BatchRules.uselessDelay],
  [RequestRules.queueFull],
  [RequestRules.queueTimeouts],
  [RequestRules.deadlines],
  [RequestRules.failures],
  [RequestRules.tensorCopies],
  [RequestRules.idleCache],
  [BatchRules.idleInstances],
]

const processRules = [ProcessRules.eventLoopLate, ProcessRules.heldMemory]

/** Returns problems before improvements, and advice about the process before that about models. */
export const advise = (source: LoadWindow.WindowSource): ReadonlyArray<Advice> => {
  if (source.steps.length < minSteps) return []
  const window = LoadWindow.make(source)
  const ofProcess = processRules.flatMap(({ kind, find }): ReadonlyArray<Advice> => {
    const found = find(window)
    return found === undefined ? [] : [{ id: kind, kind, ...found }]
  })
  const ofModels = window.models.flatMap((model) =>
    groups.flatMap((rules): ReadonlyArray<Advice> => {
      for (const { kind, find } of rules) {
        const found = find(model, window.steps)
        if (found === undefined) continue
        const { name, version } = model
        return [{ id: `${kind}:${name}:${version}`, kind, model: name, version, ...found }]
      }
      return []
    }),
  )
  const all = [...ofProcess, ...ofModels]
  const isProblem = ({ severity }: Advice) => severity === "problem"
  return [...all.filter(isProblem), ...all.filter((advice) => !isProblem(advice))].slice(0, maxAdvice)
}
