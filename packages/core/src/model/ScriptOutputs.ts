/**
 * Outputs that a script returns, by the rules of Triton for Python models: any of them may be left out, undeclared ones
 * are dropped, and dims are checked only where the configuration names them. BatchedTensors.ts is for models in code,
 * whose declarations are exact.
 */
import { Result } from "effect"
import * as SampleCodec from "./SampleCodec.ts"
import { isDynamic, print, type TensorSpec } from "../tensor/TensorSpec.ts"
import { sizeProblem, TypedTensor } from "../tensor/TypedTensor.ts"

export interface ScriptOutputs {
  /** By position of the specs; undefined if left out. */
  readonly tensors: ReadonlyArray<TypedTensor | undefined>
  /** Tensors of another rank than declared. */
  readonly unusual: ReadonlyArray<SampleCodec.SampleError>
}

/** Whether axis 0 is the batch dimension, and the rows that it must have; undefined for any number. */
export interface RowAxis {
  readonly batching: boolean
  readonly rows: number | undefined
}

export const collect = (
  specs: ReadonlyArray<TensorSpec>,
  returned: unknown,
  axis: RowAxis,
): Result.Result<ScriptOutputs, SampleCodec.SampleError> => {
  if (typeof returned !== "object" || returned === null) {
    return Result.fail(SampleCodec.namesProblem(specs, returned) ?? { field: "", message: "not an object" })
  }
  const tensors: Array<TypedTensor | undefined> = []
  const unusual: Array<SampleCodec.SampleError> = []
  for (const spec of specs) {
    const field = spec.name
    const checked = check(spec, SampleCodec.valueOf(returned, field), axis)
    if (Result.isFailure(checked)) return Result.fail({ field, message: checked.failure })
    const { tensor, remark } = checked.success
    tensors.push(tensor)
    if (remark !== undefined) unusual.push({ field, message: remark })
  }
  return Result.succeed({ tensors, unusual })
}

interface CheckedOutput {
  readonly tensor: TypedTensor | undefined
  /** Describes a tensor of another rank than declared. */
  readonly remark?: string
}

const check = (spec: TensorSpec, value: unknown, { batching, rows }: RowAxis): Result.Result<CheckedOutput, string> => {
  if (value === undefined) return Result.succeed({ tensor: undefined })
  const leading = batching ? 1 : 0
  const wrong = SampleCodec.mismatch(spec, value, leading)
  if (!(value instanceof TypedTensor)) return Result.fail(wrong ?? "not a tensor")
  const { datatype, dims } = spec
  if (wrong !== undefined) {
    const isFree = value.datatype === datatype && dims.every(isDynamic) && value.shape.length >= leading
    const problem = isFree ? sizeProblem(value) : wrong
    if (problem !== undefined) return Result.fail(problem)
  }
  if (batching && rows !== undefined && value.shape[0] !== rows) {
    return Result.fail(`wrong length of the batch: expected ${rows} rows, got ${value.shape[0]}`)
  }
  if (wrong === undefined) return Result.succeed({ tensor: value })
  const remark = `${print(datatype, value.shape)}, declared as ${print(datatype, declared(leading, dims))}`
  return Result.succeed({ tensor: value, remark })
}

const declared = (leading: number, dims: TensorSpec["dims"]): TensorSpec["dims"] =>
  leading === 1 ? [-1, ...dims] : dims
