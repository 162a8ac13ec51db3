/**
 * Encodes the responses of one stream of the generate extension. Responses of a token generator differ only in one
 * text, so the JSON around the text is written once. GenerateEncoder.ts encodes all other responses, and defines the
 * format.
 */
import { Result } from "effect"
import type { InvalidRequest } from "../../error/InferenceError.ts"
import { noParameters } from "../../request/Request.ts"
import { elementCount } from "../../tensor/TypedTensor.ts"
import type { WireResponse } from "../../wire/WireRequest.ts"
import { encodeGenerated } from "./GenerateEncoder.ts"

/** The JSON of several responses around the text in which they differ, with its quotation marks. */
export interface Template {
  readonly before: string
  readonly after: string
}

/** A document of a template. `text` is escaped: the document is `before`, `text` and `after`. */
export interface TemplateText {
  readonly template: Template
  readonly text: string
}

export class GeneratedTexts {
  #of: Pick<WireResponse, "id" | "modelName" | "modelVersion"> | undefined
  #name = ""
  #template: Template = { before: "", after: "" }

  /**
   * Returns a template and its text for a response with one text, and UTF-8 JSON for any other response. Fails as
   * `encodeGenerated` does.
   */
  encode(response: WireResponse): Result.Result<TemplateText | Uint8Array, InvalidRequest> {
    const { outputs, parameters } = response
    const [output] = outputs
    if (output?.text === undefined || outputs.length > 1 || parameters !== noParameters) {
      return encodeGenerated(response)
    }
    if (elementCount(output.shape) !== 1) return encodeGenerated(response)
    if (!this.#fits(response, output.name)) this.#make(response, output.name)
    return Result.succeed({ template: this.#template, text: escaped(output.text) })
  }

  #fits({ id, modelName, modelVersion }: WireResponse, name: string): boolean {
    const of = this.#of
    if (of === undefined || name !== this.#name) return false
    return of.id === id && of.modelName === modelName && of.modelVersion === modelVersion
  }

  #make({ id, modelName, modelVersion }: WireResponse, name: string): void {
    const ofProtocol = { ...(id === "" ? {} : { id }), model_name: modelName, model_version: modelVersion }
    const members = Object.entries(ofProtocol)
      .filter(([member]) => member !== name)
      .map(([member, value]) => `${JSON.stringify(member)}:${JSON.stringify(value)},`)
    this.#of = { id, modelName, modelVersion }
    this.#name = name
    this.#template = { before: `{${members.join("")}${JSON.stringify(name)}:"`, after: '"}' }
  }
}

/** Characters up to which a loop is faster than `JSON.stringify`. */
const shortText = 32

const escaped = (text: string): string => (isPlain(text) ? text : JSON.stringify(text).slice(1, -1))

/** Whether a text is short and needs no escapes. */
const isPlain = (text: string): boolean => {
  if (text.length > shortText) return false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code > 0x7e || code === quote || code === backslash) return false
  }
  return true
}

const quote = 0x22
const backslash = 0x5c
