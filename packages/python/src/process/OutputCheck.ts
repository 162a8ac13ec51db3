/** Checks the outputs that Python code returns, and brings them into the order of the signature. */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError } from "@nereid/core/Errors"
import * as SampleCodec from "@nereid/core/internal/model/SampleCodec"
import * as ScriptOutputs from "@nereid/core/internal/model/ScriptOutputs"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { ReceivedTensor } from "../wire/TensorMessage.ts"

export interface OutputOptions {
  readonly model: string
  readonly specs: ReadonlyArray<TensorSpec>
  /** Whether axis 0 is the batch dimension. */
  readonly batching: boolean
  /**
   * Whether each output must be as declared, and there unless a request does not name it; or by the rules of Triton for
   * Python models.
   */
  readonly rule: "declared" | "configured"
  /** Takes the remark about an output of another rank than configured, once for each output. */
  readonly warn: (message: string) => void
}

/** The rows that outputs must have (undefined for any number), and the names of the outputs (empty for all). */
export interface Expected {
  readonly rows: number | undefined
  readonly names: ReadonlyArray<string>
}

/** By position of the specs; undefined for an output that was left out. */
export type Outputs = ReadonlyArray<TypedTensor | undefined>

export type OutputCheck = (
  received: ReadonlyArray<ReceivedTensor>,
  expected: Expected,
) => Result.Result<Outputs, InferenceError>

export const make = ({ model, specs, batching, rule, warn }: OutputOptions): OutputCheck => {
  const wrong = (field: string, message: string) =>
    Result.fail(new ExecutionFailed({ message: `output '${field}' of model '${model}': ${message}` }))
  const warned = new Set<string>()
  return (received, expected) => {
    const byName: Record<string, TypedTensor> = {}
    for (const { name, tensor } of received) byName[name] = tensor
    if (rule === "declared") {
      for (const { name, optional } of specs) {
        if (optional || (expected.names.length > 0 && !expected.names.includes(name))) continue
        if (SampleCodec.valueOf(byName, name) !== undefined) continue
        const returned = received.map(({ name }) => `'${name}'`).join(", ")
        return wrong(name, `missing: the code returned ${returned === "" ? "no outputs" : `only ${returned}`}`)
      }
    }
    const collected = ScriptOutputs.collect(specs, byName, { batching, rows: expected.rows })
    if (Result.isFailure(collected)) return wrong(collected.failure.field, collected.failure.message)
    for (const { field, message } of collected.success.unusual) {
      if (rule === "declared") return wrong(field, `it is ${message}`)
      if (warned.has(field)) continue
      warned.add(field)
      warn(`Output '${field}' of model '${model}' is ${message}`)
    }
    return Result.succeed(collected.success.tensors)
  }
}
