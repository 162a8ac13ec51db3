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
  { batching, rows }: RowAxis,
): Result.Result<ScriptOutputs, SampleCodec.SampleError> => {
  if (typeof returned !== "object" || returned === null) {
    return Result.fail(SampleCodec.namesProblem(specs, returned) ?? { field: "", message: "not an object" })
  }
  const leading = batching ? 1 : 0
  const tensors: Array<TypedTensor | undefined> = []
  const unusual: Array<SampleCodec.SampleError> = []
  for (const spec of specs) {
    const { name: field, datatype, dims } = spec
    const value: unknown = Reflect.get(returned, field)
    if (value === undefined) {
      tensors.push(undefined)
      continue
    }
    const wrong = SampleCodec.mismatch(spec, value, leading)
    if (!(value instanceof TypedTensor)) return Result.fail({ field, message: wrong ?? "not a tensor" })
    if (wrong !== undefined) {
      const isFree = value.datatype === datatype && dims.every(isDynamic) && value.shape.length >= leading
      const size = isFree ? sizeProblem(value) : wrong
      if (size !== undefined) return Result.fail({ field, message: size })
      unusual.push({
        field,
        message: `${print(datatype, value.shape)}, declared as ${print(datatype, declared(leading, dims))}`,
      })
    }
    if (batching && rows !== undefined && value.shape[0] !== rows) {
      const message = `wrong length of the batch: expected ${rows} rows, got ${value.shape[0]}`
      return Result.fail({ field, message })
    }
    tensors.push(value)
  }
  return Result.succeed({ tensors, unusual })
}

const declared = (leading: number, dims: TensorSpec["dims"]): TensorSpec["dims"] =>
  leading === 1 ? [-1, ...dims] : dims
