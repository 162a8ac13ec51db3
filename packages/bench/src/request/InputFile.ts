/**
 * Reads the user's inputs from a file. The format is that of v2 over HTTP, `{"inputs": […]}`, or an array of such
 * documents. The format of perf_analyzer also works: `{"data": [{"NAME": […]}]}`, with datatypes, and omitted shapes,
 * from the model. Several requests are sent in turn.
 */
import * as BinaryExtension from "@nereid/core/internal/codec/json/BinaryExtension"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { Result } from "effect"
import * as Inputs from "./Inputs.ts"
import * as JsonParts from "./JsonParts.ts"
import type { ModelName } from "../target/ModelClient.ts"
import type { ModelTraits } from "../target/ModelTraits.ts"

/**
 * Parses the file.
 * @throws Error if the text has none of these formats
 */
export const read = (text: string, model: ModelName, traits: ModelTraits): ReadonlyArray<WireRequest> => {
  const data = JsonParts.members(text)?.get("data")
  const documents =
    data === undefined
      ? (JsonParts.elements(text) ?? [text])
      : entries(data).map((entry, index) => document(entry, `entry ${index + 1}`, traits))
  if (documents.length === 0) throw new Error("the file contains no request")
  return documents.map((document, index) => {
    const decoded = BinaryExtension.decodeRequest(new TextEncoder().encode(document), undefined, model)
    if (Result.isSuccess(decoded)) return decoded.success.wire
    const prefix = documents.length === 1 ? "" : `request ${index + 1}: `
    throw new Error(`${prefix}${decoded.failure.message}`)
  })
}

/** perf_analyzer has them in streams, or in one without saying so. */
const entries = (data: string): ReadonlyArray<string> =>
  (JsonParts.elements(data) ?? []).flatMap((entry) => JsonParts.elements(entry) ?? [entry])

const document = (entry: string, prefix: string, traits: ModelTraits): string => {
  const inputs = [...(JsonParts.members(entry) ?? [])].map(([name, value]) => {
    const input = traits.inputs.find((candidate) => candidate.name === name)
    if (input === undefined) throw new Error(`${prefix}: the model '${traits.name}' has no input '${name}'`)
    const parts = JsonParts.members(value)
    const content = parts === undefined ? value : parts.get("content")
    if (content === undefined || JsonParts.elements(content) === undefined) {
      throw new Error(`${prefix}: the content of input '${name}' is not an array`)
    }
    const given = parts?.get("shape")
    const extents = given === undefined ? undefined : (JsonParts.elements(given) ?? []).map(Number)
    const shape = Inputs.shapeOf(input, traits, 1, extents)
    return `{"name":${JSON.stringify(name)},"datatype":"${input.datatype}","shape":[${shape}],"data":${content}}`
  })
  return `{"inputs":[${inputs}]}`
}
