/** Validates `sequence_batching` of a configuration, in Triton's words and order. Part of ConfigCheck.ts. */
import {
  DataType,
  type ModelConfig,
  type ModelSequenceBatching,
  ModelSequenceBatching_Control_Kind as Kind,
  type ModelSequenceBatching_Control as Control,
  type ModelSequenceBatching_ControlInput as ControlInput,
} from "@nereid/protocol/model_config"

export const problem = (
  { name, maxBatchSize }: ModelConfig,
  { controlInput, strategyChoice: strategy }: ModelSequenceBatching,
): string | undefined => {
  for (const kind of checkedKinds) {
    const found = kindProblem(name, controlInput, kind)
    if (found !== undefined) return found
  }
  if (strategy.case === "oldest") {
    for (const size of strategy.value.preferredBatchSize) {
      if (size <= 0) return `sequence batching preferred batch size must be positive for ${name}`
      if (size > maxBatchSize) return `sequence batching preferred batch size must be <= max batch size for ${name}`
    }
  }
  if (strategy.case !== "direct") return undefined
  const { minimumSlotUtilization: utilization } = strategy.value
  return utilization < 0 || utilization > 1
    ? `sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${name}`
    : undefined
}

type CheckedKind = (typeof checkedKinds)[number]

const checkedKinds = [
  "CONTROL_SEQUENCE_START",
  "CONTROL_SEQUENCE_END",
  "CONTROL_SEQUENCE_READY",
  "CONTROL_SEQUENCE_CORRID",
] as const

/** Checks the names up to a wrong control of this kind, and that control. */
const kindProblem = (model: string, inputs: ReadonlyArray<ControlInput>, kind: CheckedKind): string | undefined => {
  const names = new Set<string>()
  let found: Control | undefined
  for (const { name, control } of inputs) {
    if (name === "") return `sequence batching control tensor must have a name for ${model}`
    if (names.has(name)) {
      return `sequence batching control tensor '${name}' is specified for multiple control kinds for ${model}`
    }
    names.add(name)
    for (const one of control) {
      if (one.kind !== Kind[kind]) continue
      if (found !== undefined) return `sequence batching specifies multiple ${kind} tensors for ${model}`
      found = one
      const problem = valuesProblem(model, one, kind)
      if (problem !== undefined) return problem
    }
  }
  if (kind !== "CONTROL_SEQUENCE_CORRID" || found === undefined || idTypes.has(found.dataType)) return undefined
  return (
    `unexpected data type for control ${kind} for ${model}. ` +
    "Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
  )
}

/** Checks which fields have the values for false and true. */
const valuesProblem = (model: string, control: Control, kind: CheckedKind): string | undefined => {
  const subject = `${kind} for ${model}`
  const { int32FalseTrue, fp32FalseTrue, boolFalseTrue } = control
  const counts = [
    ["int32_false_true", int32FalseTrue.length],
    ["fp32_false_true", fp32FalseTrue.length],
    ["bool_false_true", boolFalseTrue.length],
  ] as const
  const [given, other] = counts.filter(([, count]) => count > 0)
  if (kind === "CONTROL_SEQUENCE_CORRID") {
    return given && `sequence batching must not specify either ${oneOfThree} for ${subject}`
  }
  if (given === undefined) return `sequence batching must specify either ${oneOfThree} for ${subject}`
  if (other !== undefined) return `sequence batching specifies more than one from ${allThree} for ${subject}`
  const [field, count] = given
  return count === 2 ? undefined : `sequence batching control '${field}' must have exactly 2 entries for ${subject}`
}

const oneOfThree = "'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
const allThree = "'int32_false_true', 'fp32_false_true' and 'bool_false_true'"

const idTypes: ReadonlySet<DataType> = new Set([
  DataType.TYPE_UINT64,
  DataType.TYPE_INT64,
  DataType.TYPE_UINT32,
  DataType.TYPE_INT32,
  DataType.TYPE_STRING,
])
