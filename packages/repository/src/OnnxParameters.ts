/** What a configuration says of ONNX Runtime, as the options of its sessions (reference, A11). */
import { Result } from "effect"
import { availableParallelism } from "node:os"
import type { Options } from "@nereid/onnx/Instances"
import type { ModelConfig } from "@nereid/protocol/model_config"

export const options = (config: ModelConfig, file: string): Result.Result<Options, string> => {
  const { instanceGroup, optimization, parameters } = config
  const problems: Array<string> = []
  /** A parameter as a number in these bounds; the fallback where it is absent or stands for it. */
  const number = (name: string, fallback: number, [least, most]: readonly [number, number]): number => {
    const text = parameters[name]?.stringValue.trim()
    if (text === undefined || text === "") return fallback
    const value = /^-?[0-9]{1,9}$/.test(text) ? Number(text) : NaN
    if (value >= least && value <= most) return value
    problems.push(`parameter '${name}' must be an integer from ${least} to ${most}, but '${text}' was given`)
    return fallback
  }
  const isParallel = number("execution_mode", 0, [0, 1]) === 1
  const interOpThreads = number("inter_op_thread_count", 0, [0, 1024]) || availableParallelism()
  const session: Options = {
    file,
    instances: instanceGroup.filter(({ passive }) => !passive).map(({ count }) => ({ count })),
    // The default of the runtime, all cores for each instance, has instances wait for each other.
    intraOpThreads: number("intra_op_thread_count", 0, [0, 1024]) || 1,
    interOpThreads: isParallel ? Math.max(2, interOpThreads) : 1,
    graphOptimization: graphLevels.get(optimization?.graph?.level ?? 0) ?? "all",
    memoryArena: number("enable_mem_arena", 1, [0, 1]) === 1,
  }
  if (instanceGroup.every(({ passive }) => passive)) problems.push("all its instance groups are passive")
  const [problem] = problems
  return problem === undefined ? Result.succeed(session) : Result.fail(problem)
}

const graphLevels: ReadonlyMap<number, Options["graphOptimization"]> = new Map([
  [-1, "basic"],
  [1, "extended"],
  [2, "disabled"],
])
