/** The configuration of a declared model, as a model.py receives it, and its comparison with a completed one. */
import { create } from "@bufbuild/protobuf"
import * as MessageJson from "@nereid/core/internal/codec/protobuf/MessageJson"
import type { Signature, TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import { print, wireDims } from "@nereid/core/internal/tensor/TensorSpec"
import { DataType, ModelConfigSchema } from "@nereid/protocol/model_config"
import { isRecord, list, text } from "./wire/Header.ts"

export interface ConfiguredModel {
  readonly name: string
  readonly maxBatchSize: number
  readonly signature: Signature
  readonly decoupled: boolean
  /** Texts under `parameters`. */
  readonly parameters: Readonly<Record<string, string>>
  /** Name of the Python file. */
  readonly filename: string
}

/** As JSON text. Without the signature, as `auto_complete_config` receives it, which then declares the model's own. */
export const toJson = (
  { name, maxBatchSize, signature, decoupled, parameters, filename }: ConfiguredModel,
  hasSignature = true,
): string => {
  const config = create(ModelConfigSchema, {
    name,
    backend: "python",
    maxBatchSize,
    input: hasSignature ? signature.inputs.map((spec) => ({ ...tensorOf(spec), optional: spec.optional })) : [],
    output: hasSignature ? signature.outputs.map(tensorOf) : [],
    defaultModelFilename: filename,
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, stringValue]) => [key, { stringValue }] as const),
    ),
    ...(decoupled && { modelTransactionPolicy: { decoupled } }),
  })
  return JSON.stringify(MessageJson.print(ModelConfigSchema, config))
}

const tensorOf = ({ name, datatype, dims }: TensorSpec) => ({
  name,
  dataType: datatype === "BYTES" ? DataType.TYPE_STRING : DataType[`TYPE_${datatype}`],
  dims: wireDims(dims).map(BigInt),
})

/**
 * The first difference between the declaration and a completed configuration; undefined if there is none. A
 * configuration without inputs, or without outputs, says nothing about them.
 */
export const difference = (
  { maxBatchSize, signature }: Pick<ConfiguredModel, "maxBatchSize" | "signature">,
  completed: Readonly<Record<string, unknown>>,
): string | undefined => {
  for (const [side, specs] of [["input", signature.inputs] as const, ["output", signature.outputs] as const]) {
    const given = list(completed, side).filter(isRecord)
    if (given.length === 0) continue
    for (const tensor of given) {
      const name = text(tensor, "name") ?? ""
      const found = printed(tensor)
      const spec = specs.find((spec) => spec.name === name)
      if (spec === undefined) {
        if (tensor["optional"] === true) continue
        return `its ${side} '${name}' (${found}) is not declared`
      }
      const declared = print(spec.datatype, wireDims(spec.dims))
      if (found !== declared) return `its ${side} '${name}' is ${found}, but ${declared} is declared`
    }
    const missing = specs.find(({ name, optional }) => !optional && !given.some((tensor) => tensor["name"] === name))
    if (missing === undefined) continue
    const found = given.map((tensor) => `'${String(tensor["name"])}'`).join(", ")
    return `it has no ${side} '${missing.name}', only ${found}`
  }
  const size = completed["max_batch_size"]
  if (typeof size !== "number" || size >= maxBatchSize) return undefined
  return `its max_batch_size is ${size}, but maxBatchSize ${maxBatchSize} is declared`
}

const printed = (tensor: Readonly<Record<string, unknown>>): string => {
  const type = (text(tensor, "data_type") ?? "").replace(/^TYPE_/, "")
  const dims = list(tensor, "dims").map(Number)
  return print(type === "STRING" ? "BYTES" : type, dims)
}
