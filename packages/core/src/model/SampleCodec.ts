/**
 * Converts samples to tensors and back, for the inputs or the outputs of a signature. A field of tensors is only
 * checked against its spec; the Schemas of other fields convert one value at a time.
 */
import { Cause, Exit, Result, Schema } from "effect"
import * as ElementCodec from "./ElementCodec.ts"
import { type Field, type Fields, isPlain } from "./Field.ts"
import { matches, print, type TensorSpec } from "../tensor/TensorSpec.ts"
import { plain } from "../tensor/TextTensor.ts"
import { reshape, sizeProblem, TypedTensor } from "../tensor/TypedTensor.ts"

/** The problem with a value, and its field. */
export interface SampleError {
  readonly field: string
  readonly message: string
}

export interface SampleCodec {
  /** Tensors by position of the specs; with `batched`, each has a leading batch dimension of 1. */
  readonly encode: (
    sample: unknown,
    batched: boolean,
  ) => Result.Result<ReadonlyArray<TypedTensor | undefined>, SampleError>
  /** The sample of tensors without a batch dimension. */
  readonly decode: (
    tensors: ReadonlyArray<TypedTensor | undefined>,
  ) => Result.Result<Record<string, unknown>, SampleError>
}

export const make = (fields: Fields, specs: ReadonlyArray<TensorSpec>): SampleCodec => {
  const columns = specs.map((spec) => column(spec, fields[spec.name]))
  return {
    encode: (sample, batched) => {
      if (!hasJust(specs, sample)) {
        const strange = namesProblem(specs, sample)
        if (strange !== undefined) return Result.fail(strange)
      }
      // Has its final length from the start: an array that grows reserves room for 16 more elements.
      const tensors: Array<TypedTensor | undefined> = columns.map(() => undefined)
      let index = 0
      for (const { spec, encode } of columns) {
        const value = valueOf(sample, spec.name)
        const tensor = value === undefined ? undefined : encode(value, batched)
        if (typeof tensor === "string") return Result.fail({ field: spec.name, message: tensor })
        tensors[index++] = tensor
      }
      return Result.succeed(tensors)
    },
    decode: (tensors) => {
      const sample: Record<string, unknown> = {}
      for (const [index, { spec, decode }] of columns.entries()) {
        const tensor = tensors[index]
        if (tensor === undefined) continue
        const value = decode(tensor)
        if (Result.isFailure(value)) return Result.fail({ field: spec.name, message: value.failure })
        sample[spec.name] = value.success
      }
      return Result.succeed(sample)
    },
  }
}

interface Column {
  readonly spec: TensorSpec
  /** Returns the tensor, or a description of the problem. */
  readonly encode: (value: unknown, batched: boolean) => TypedTensor | string
  readonly decode: (tensor: TypedTensor) => Result.Result<unknown, string>
}

const column = (spec: TensorSpec, field: Field | undefined): Column => {
  if (field === undefined) throw new TypeError(`No field for ${spec.name}. This is a bug.`)
  const check = (value: unknown, batched: boolean): TypedTensor | string => {
    const wrong = mismatch(spec, value, 0)
    if (wrong !== undefined || !(value instanceof TypedTensor)) return wrong ?? "expected a tensor"
    return batched ? reshape(value, [1, ...value.shape]) : value
  }
  if (isPlain(field)) return { spec, encode: check, decode: (tensor) => Result.succeed(plain(tensor)) }
  const codec: Schema.Codec<unknown, unknown> = field as Field & Schema.Codec<unknown, unknown>
  const encodeExit = Schema.encodeUnknownExit(codec)
  const decodeExit = Schema.decodeUnknownExit(codec)
  const element = ElementCodec.make(field)
  return {
    spec,
    encode: (value, batched) => {
      const tensor = element?.encode(value, batched ? batchOfOne : one)
      if (tensor !== undefined) return tensor
      const exit = encodeExit(value)
      return Exit.isSuccess(exit) ? check(exit.value, batched) : messageOf(exit.cause)
    },
    decode: (tensor) => {
      const value = element?.decode(tensor)
      if (value !== undefined) return Result.succeed(value)
      const exit = decodeExit(tensor)
      return Exit.isSuccess(exit) ? Result.succeed(exit.value) : Result.fail(messageOf(exit.cause))
    },
  }
}

/** Shapes of one element, alone and as a batch. */
const one = [1]
const batchOfOne = [1, 1]

/** The value of a name. Names that all objects have, such as `constructor`, must be the object's own. */
export const valueOf = (values: unknown, name: string): unknown => {
  const object: object = Object(values)
  return !(name in Object.prototype) || Object.hasOwn(object, name) ? Reflect.get(object, name) : undefined
}

/** Whether the values are of all these names and no other. False also for optional names, and other unusual forms. */
const hasJust = (specs: ReadonlyArray<TensorSpec>, values: unknown): boolean => {
  let count = 0
  // `for…in` makes no list of keys. It also visits inherited names, which are unusual.
  for (const name in Object(values)) {
    if (name !== specs[count++]?.name || valueOf(values, name) === undefined) return false
  }
  return count > 0 && count === specs.length
}

/** The first undeclared or missing name; undefined if there is none. */
export const namesProblem = (specs: ReadonlyArray<TensorSpec>, values: unknown): SampleError | undefined => {
  if (typeof values !== "object" || values === null) {
    return {
      field: specs[0]?.name ?? "",
      message: `missing: expected an object with ${list(specs)}, got ${describe(values)}`,
    }
  }
  for (const name of Object.keys(values)) {
    if (!specs.some((spec) => spec.name === name)) {
      return { field: name, message: `not declared; expected one of ${list(specs)}` }
    }
  }
  for (const spec of specs) {
    if (spec.optional || valueOf(values, spec.name) !== undefined) continue
    const { name, datatype, dims } = spec
    return { field: name, message: `missing: declared as ${print(datatype, dims)}` }
  }
  return undefined
}

/**
 * The mismatch between a value and the spec of a tensor; undefined if it matches. The dims of the spec begin at axis
 * `from`.
 */
export const mismatch = (spec: TensorSpec, value: unknown, from: number): string | undefined => {
  if (value instanceof TypedTensor && value.datatype === spec.datatype && matches(spec.dims, value.shape, from)) {
    return sizeProblem(value)
  }
  const declared = [...Array.from({ length: from }, () => -1), ...spec.dims]
  const differs = (problem: string, got: string) =>
    `${problem}: declared as ${print(spec.datatype, declared)}, got ${got}`
  if (!(value instanceof TypedTensor)) return differs("not a tensor", describe(value))
  const got = print(value.datatype, value.shape)
  if (value.datatype !== spec.datatype) return differs("wrong datatype", got)
  return differs(value.shape.length === declared.length ? "wrong dims" : "wrong rank", got)
}

const list = (specs: ReadonlyArray<TensorSpec>) => specs.map(({ name }) => `'${name}'`).join(", ")

const describe = (value: unknown): string =>
  value === null
    ? "null"
    : Array.isArray(value)
      ? "an array"
      : ArrayBuffer.isView(value)
        ? value.constructor.name
        : typeof value

const messageOf = (cause: Cause.Cause<Schema.SchemaError>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.message.replaceAll("\n", "; ") : String(error)
}
