/** Encodes requests of `/generate_stream`: one flat object of JSON. */
import type { Field, Model } from "../../api/Model.ts"
import { Invalid } from "../Invalid.ts"
import { write } from "../json/Json.ts"
import { hasJson, kindOf } from "../tensor/Datatype.ts"
import { isVariable } from "../tensor/Shape.ts"
import { isList, textOf } from "../tensor/Tensor.ts"
import { type Attempt, type Input, parametersOf } from "./Attempt.ts"
import { jsonOf } from "./InferRequest.ts"

/** The first tensor of every request or response that has no JSON, so that HTTP has no stream of the model. */
export const fieldWithoutJson = ({ inputs, outputs }: Model): Field | undefined =>
  [...inputs.filter(({ optional }) => !optional), ...outputs].find(({ datatype }) => !hasJson(datatype))

/** @throws Invalid for tensors that this JSON cannot have */
export const make = (attempt: Attempt): string => {
  const parameters = parametersOf(attempt)
  const members = [
    ...attempt.inputs.map((input) => `${JSON.stringify(input.field.name)}:${valueOf(input)}`),
    ...(attempt.id === "" ? [] : [`"id":${JSON.stringify(attempt.id)}`]),
    ...(Object.keys(parameters).length === 0 ? [] : [`"parameters":${write(parameters)}`]),
  ]
  return `{${members.join(",")}}`
}

const valueOf = ({ field, tensor }: Input): string => {
  const { name, datatype, dims } = field
  const refuse = (reason: string) => new Invalid(`${name}: ${reason}. A stream over HTTP has its request as JSON`)
  if (!hasJson(datatype)) throw refuse(`${datatype} has no JSON`)
  if (isList(tensor.data) && tensor.data.some((element) => textOf(element) === undefined)) {
    throw refuse("bytes that are not UTF-8 have no JSON")
  }
  const isFloat = kindOf(datatype) === "float"
  if (isFloat && !isList(tensor.data) && tensor.data.some((value: number | bigint) => !Number.isFinite(value))) {
    throw refuse("NaN and the infinities have no JSON")
  }
  const all = jsonOf(tensor)
  if (tensor.data.length === 1 && dims.every((dim) => dim === 1)) return all.slice(1, -1)
  return dims.filter(isVariable).length > 1 ? nested(JSON.parse(`[${elements(all)}]`), tensor.shape) : all
}

const elements = (all: string): string => all.slice(1, -1)

/** Lists inside lists, from the inside out. */
const nested = (values: ReadonlyArray<unknown>, shape: ReadonlyArray<number>): string => {
  let level = values
  for (const extent of shape.slice(1).toReversed()) {
    const flat = level
    level = Array.from({ length: extent === 0 ? 0 : flat.length / extent }, (_, row) =>
      flat.slice(row * extent, (row + 1) * extent),
    )
  }
  return JSON.stringify(level)
}
