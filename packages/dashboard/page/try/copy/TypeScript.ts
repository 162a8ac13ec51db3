/** The request as a program with the typed client of `@nereid/client`, and the declaration of the model. */
import type { Field, Model } from "../../api/Model.ts"
import type { Attempt, Input, ParameterValue } from "../call/Attempt.ts"
import { isVariable } from "../tensor/Shape.ts"
import { isList, textOf } from "../tensor/Tensor.ts"
import { elementText } from "../tensor/ValueText.ts"
import { keyOf, source } from "./SchemaSource.ts"
import { base64, fileOf, filesOf, lines, onlyElement, shortText, type Snippet } from "./Snippet.ts"

/** More labels are an index in the declaration. */
const maxLabels = 50

export const make = (attempt: Attempt, origin: string): Snippet => {
  const { model, inputs } = attempt
  const className = classOf(model.name)
  const fields = [...model.inputs, ...model.outputs]
  const values = inputs.map((input) => `${keyOf(input.field.name)}: ${valueOf(input)}`)
  const options = optionsOf(attempt)
  const call = `${lines(values, "") === "" ? "{}" : `{ ${values.join(", ")} }`}${options}`
  const caller = model.sequences === undefined ? "model" : "session"
  const files = filesOf(inputs)
  const target = `{ url: ${JSON.stringify(origin)}${model.version === "" ? "" : `, version: ${JSON.stringify(model.version)}`} }`
  const text = [
    ...(files.length === 0 ? [] : [`import { readFile } from "node:fs/promises"`]),
    `import { Client } from "@nereid/client"`,
    `import { Model, Tensor } from "@nereid/core"`,
    ...(fields.some(({ form, schema }) => form === "json" && schema !== undefined)
      ? [`import { Schema } from "effect"`]
      : []),
    "",
    `class ${className} extends Model.Service<${className}>()(${JSON.stringify(model.name)}, {`,
    `  inputs: ${declared(model.inputs)},`,
    `  outputs: ${declared(model.outputs)},`,
    ...(model.maxBatchSize > 0 ? [`  maxBatchSize: ${model.maxBatchSize},`] : []),
    ...(model.sequences === undefined ? [] : ["  sequence: {},"]),
    "}) {}",
    "",
    `await using model = await Client.connect(${className}, ${target})`,
    ...(model.sequences === undefined ? [] : ["await using session = model.session()"]),
    ...(model.decoupled
      ? [`for await (const outputs of ${caller}.stream(${call})) console.log(outputs)`]
      : [`const outputs = await ${caller}.infer(${call})`, "console.log(outputs)"]),
  ]
  return { text: text.join("\n"), files }
}

const reserved = new Set(["Client", "Model", "Schema", "Tensor"])

/** A name for the class: `add_sub` is `AddSub`. */
const classOf = (name: Model["name"]): string => {
  const words = name.split(/[^A-Za-z0-9]+/).filter((word) => word !== "")
  const joined = words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")
  return /^[A-Z]/.test(joined) && !reserved.has(joined) ? joined : `Model${joined}`
}

const declared = (fields: ReadonlyArray<Field>): string => {
  const members = fields.map((field) => {
    const type = typeOf(field)
    return `${keyOf(field.name)}: ${field.optional ? `Tensor.optional(${type})` : type}`
  })
  return members.length === 0 ? "{}" : `{ ${members.join(", ")} }`
}

const isNamed = ({ form, labels }: Field): boolean => form === "label" && labels.length <= maxLabels

const typeOf = (field: Field): string => {
  const { form, datatype, dims, labels, schema } = field
  if (form === "text" || (form === "json" && schema === undefined)) return "Tensor.utf8()"
  if (form === "json") return `Tensor.json(${source(schema ?? {}, schema ?? {})})`
  if (isNamed(field)) return `Tensor.labels([${labels.map((label) => JSON.stringify(label)).join(", ")}])`
  if (form === "label" || form === "scalar") return `Tensor.scalar(${JSON.stringify(datatype)})`
  return `Tensor.${datatype}(${dims.map((dim) => (isVariable(dim) ? JSON.stringify(dim) : dim)).join(", ")})`
}

const valueOf = (input: Input): string => {
  const { field, tensor } = input
  const { form, schema, labels } = field
  const file = fileOf(input)
  const element = onlyElement(tensor)
  if (element !== undefined && (form === "text" || form === "json")) {
    const text =
      file === undefined
        ? JSON.stringify(textOf(element) ?? "")
        : `await readFile(${JSON.stringify(file.name)}, "utf8")`
    if (form === "text" || schema === undefined) return text
    return file === undefined ? (textOf(element) ?? "null") : `JSON.parse(${text})`
  }
  if (isList(tensor.data)) {
    const list =
      file === undefined ? tensor.data.map(bytesOf).join(", ") : `await readFile(${JSON.stringify(file.name)})`
    return `Tensor.make("BYTES", [${tensor.shape.join(", ")}], [${list}])`
  }
  if (form === "label" && isNamed(field)) return JSON.stringify(labels[Number(tensor.data[0])] ?? "")
  if (form === "label" || form === "scalar") return numbers(tensor.datatype, tensor.data)[0] ?? "0"
  const { datatype, shape } = tensor
  const array = arrays[datatype] ?? "Float32Array"
  const data =
    file === undefined
      ? datatype === "BF16"
        ? `Uint16Array.from([${lines(numbers("FP32", tensor.data), "")}], (value) => new Uint32Array(Float32Array.of(value).buffer)[0]! >>> 16)`
        : `${array}.of(${lines(numbers(datatype, tensor.data), "")})`
      : `new ${array}(Uint8Array.from(await readFile(${JSON.stringify(file.name)})).buffer)`
  return `Tensor.make(${JSON.stringify(datatype)}, [${shape.join(", ")}], ${data})`
}

const arrays: Readonly<Record<string, string>> = {
  BOOL: "Uint8Array",
  UINT8: "Uint8Array",
  UINT16: "Uint16Array",
  UINT32: "Uint32Array",
  UINT64: "BigUint64Array",
  INT8: "Int8Array",
  INT16: "Int16Array",
  INT32: "Int32Array",
  INT64: "BigInt64Array",
  FP16: "Float16Array",
  BF16: "Uint16Array",
  FP32: "Float32Array",
  FP64: "Float64Array",
}

const bytesOf = (element: Uint8Array): string => {
  const text = shortText(element)
  return text === undefined
    ? `Buffer.from(${JSON.stringify(base64(element))}, "base64")`
    : `Buffer.from(${JSON.stringify(text)})`
}

const numbers = (datatype: string, data: Exclude<Input["tensor"]["data"], ReadonlyArray<Uint8Array>>): Array<string> =>
  Array.from<number | bigint, string>(data, (value, index) => {
    if (typeof value === "bigint") return `${value}n`
    return elementText(datatype === "BOOL" && data.length > 1 ? "UINT8" : datatype, data, index) ?? "0"
  })

const optionsOf = ({ id, parameters }: Attempt): string => {
  const { timeout, priority, ...others } = parameters
  const free = Object.entries(others).map(([name, value]) => `${keyOf(name)}: ${parameterOf(value)}`)
  const members = [
    ...(id === "" ? [] : [`id: ${JSON.stringify(id)}`]),
    ...(timeout === undefined ? [] : [`queueTimeout: "${String(timeout)} micros"`]),
    ...(priority === undefined ? [] : [`priority: ${String(priority)}`]),
    ...(free.length === 0 ? [] : [`parameters: { ${free.join(", ")} }`]),
  ]
  return members.length === 0 ? "" : `, { ${members.join(", ")} }`
}

const parameterOf = (value: ParameterValue): string => (typeof value === "bigint" ? `${value}n` : JSON.stringify(value))
