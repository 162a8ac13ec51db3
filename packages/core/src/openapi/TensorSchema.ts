/**
 * JSON Schemas of tensors as the protocol's JSON has them: an element, the elements of a tensor in one array or in
 * nested arrays, and a shape. Lengths and extents are in the schema where the signature fixes them. JsonField.ts has
 * the values of custom routes, as code sees them.
 */
import * as DefaultDocument from "../contract/DefaultDocument.ts"
import { isLabel } from "../contract/TensorForm.ts"
import type { DataType } from "../tensor/DataType.ts"
import { integerRanges } from "../tensor/IntegerRange.ts"
import { type Dim, isDynamic, type TensorSpec } from "../tensor/TensorSpec.ts"
import type { SchemaObject } from "./SchemaObject.ts"

/** Labels that a schema lists; more are only counted. */
export const maxLabels = 1000

/** Axes of nested arrays that a schema describes. */
const maxAxes = 8

/** One element. `json` is the schema of the text, for the form `json`. */
export const element = (spec: TensorSpec, json?: SchemaObject): SchemaObject => {
  const { datatype, labels = [] } = spec
  if (isLabel(spec)) {
    const common = { type: "integer", description: "Index of a label" }
    if (labels.length > maxLabels) return { ...common, minimum: 0, maximum: labels.length - 1 }
    return { ...common, enum: labels.map((_, index) => index), "x-enum-varnames": labels }
  }
  if (json === undefined) return elementOf(datatype)
  return { type: "string", contentMediaType: "application/json", contentSchema: json }
}

const elementOf = (datatype: DataType): SchemaObject => {
  switch (datatype) {
    case "BOOL":
      return { type: "boolean" }
    case "BYTES":
      return { type: "string" }
    case "FP32":
      return { type: "number", format: "float" }
    case "FP64":
      return { type: "number", format: "double" }
    case "FP16":
    case "BF16":
      return { type: "number" }
    case "INT64":
      return { type: "integer", format: "int64", minimum: digits(-(2n ** 63n)), maximum: digits(2n ** 63n - 1n) }
    case "UINT64":
      return uint64
    default: {
      const { min, max } = integerRanges[datatype]
      return { type: "integer", ...(datatype === "INT32" ? { format: "int32" } : {}), minimum: min, maximum: max }
    }
  }
}

/** An integer of 64 bits, of which JSON.stringify keeps all digits. */
const digits = (value: bigint): object => rawJSON(String(value))

/** Which TypeScript has no type of yet. */
const { rawJSON } = JSON as typeof JSON & { readonly rawJSON: (text: string) => object }

/** An unsigned integer of 64 bits. */
export const uint64: SchemaObject = { type: "integer", minimum: 0, maximum: digits(2n ** 64n - 1n) }

/** The number of elements of one row: its fixed part, and whether that is all. */
interface Count {
  readonly fixed: number
  readonly isFixed: boolean
}

const count = ({ dims }: TensorSpec): Count => {
  const extents = dims.filter((dim): dim is number => typeof dim === "number" && !isDynamic(dim))
  return { fixed: extents.reduce((product, extent) => product * extent, 1), isFixed: extents.length === dims.length }
}

/** Bounds of an array, without those that say nothing, and those that no array reaches. */
const array = (items: SchemaObject, min: number, max: number | undefined): SchemaObject => ({
  type: "array",
  items,
  ...(min > 0 && Number.isSafeInteger(min) ? { minItems: min } : {}),
  ...(max !== undefined && Number.isSafeInteger(max) ? { maxItems: max } : {}),
})

const nested = (dims: ReadonlyArray<Dim>, items: SchemaObject): SchemaObject =>
  dims.reduceRight<SchemaObject>(
    (inner, dim) => (typeof dim === "number" && dim >= 0 ? array(inner, dim, dim) : array(inner, 0, undefined)),
    items,
  )

/** The member `data` of a tensor in a request: one array, or an array for each axis. */
export const inputData = (spec: TensorSpec, maxBatchSize: number, items: SchemaObject): SchemaObject => {
  const flat = outputData(spec, maxBatchSize, items)
  const axes = spec.dims.length + (maxBatchSize > 0 ? 1 : 0)
  if (axes < 2 || axes > maxAxes) return flat
  const row = nested(spec.dims, items)
  return { anyOf: [flat, maxBatchSize > 0 ? array(row, 1, maxBatchSize) : row] }
}

/** The member `data` of a tensor in a response: one array. */
export const outputData = (spec: TensorSpec, maxBatchSize: number, items: SchemaObject): SchemaObject => {
  const { fixed, isFixed } = count(spec)
  return isFixed ? array(items, fixed, fixed * Math.max(1, maxBatchSize)) : array(items, 0, undefined)
}

/** The shape of a tensor, with the axis of the batch. */
export const shape = ({ dims }: TensorSpec, maxBatchSize: number): SchemaObject => {
  const extents = dims.map((dim): SchemaObject => {
    if (typeof dim === "string") return { type: "integer", minimum: 0, title: dim }
    return dim === -1 ? { type: "integer", minimum: 0 } : { const: dim }
  })
  const rows = { type: "integer", minimum: 1, maximum: maxBatchSize, description: "Rows of the batch" }
  const all = maxBatchSize > 0 ? [rows, ...extents] : extents
  if (all.length === 0) return { type: "array", items: { type: "integer" }, maxItems: 0 }
  return { type: "array", prefixItems: all, minItems: all.length, maxItems: all.length }
}

/**
 * One row as the generate extension has it: a value for a single element, otherwise an array of elements or nested
 * arrays.
 */
export const generateInput = (spec: TensorSpec, items: SchemaObject): SchemaObject => {
  const { fixed, isFixed } = count(spec)
  if (isFixed && fixed === 1) return items
  const flat = isFixed ? array(items, fixed, fixed) : array(items, 0, undefined)
  const isNested = spec.dims.length > 1 && spec.dims.length <= maxAxes
  const forms = [...(fixed === 1 ? [items] : []), flat, ...(isNested ? [nested(spec.dims, items)] : [])]
  return forms.length === 1 ? flat : { anyOf: forms }
}

/** The same of a response, which never nests arrays. */
export const generateOutput = (spec: TensorSpec, items: SchemaObject): SchemaObject => {
  const { fixed, isFixed } = count(spec)
  if (isFixed) return fixed === 1 ? items : array(items, fixed, fixed)
  const several = array(items, 0, undefined)
  return fixed === 1 ? { anyOf: [items, several] } : several
}

/** The default of an input in the form of `generateInput`; undefined for one that JSON cannot represent. */
export const generateDefault = (spec: TensorSpec): SchemaObject | undefined => {
  if (spec.default === undefined) return undefined
  const preset = DefaultDocument.write(spec.datatype, spec.default)
  if (preset === undefined) return undefined
  const { fixed, isFixed } = count(spec)
  const given = "element" in preset ? [preset.element] : preset.data
  const values = given.map((value) => numeric(spec.datatype, value))
  if (values.includes(undefined)) return undefined
  if (isFixed && fixed === 1) return { default: values[0] }
  if ("element" in preset) return { description: `Default: ${JSON.stringify(preset.element)} for each element` }
  return { default: values }
}

/** Without the strings that stand for numbers beyond JSON. */
const numeric = (datatype: DataType, value: unknown): unknown => {
  if (typeof value !== "string" || datatype === "BYTES") return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : undefined
}
