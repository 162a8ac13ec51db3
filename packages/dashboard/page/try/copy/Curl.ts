/** The request as a command of curl, for a POSIX shell. */
import * as GenerateRequest from "../call/GenerateRequest.ts"
import { headerOf, isJsonTensor } from "../call/InferRequest.ts"
import { type Attempt, type Input, pathOf } from "../call/Attempt.ts"
import { hasJson } from "../tensor/Datatype.ts"
import { isList, toBytes } from "../tensor/Tensor.ts"
import { fileOf, type Snippet, type SnippetFile } from "./Snippet.ts"

/** Linux limits an argument to 128 KiB. */
const maxArgument = 100_000

/** Bytes that the command has itself. */
const maxPrinted = 256

export const make = (attempt: Attempt, origin: string): Snippet => {
  const { model, inputs } = attempt
  if (model.decoupled) {
    const url = quoted(origin + pathOf(model, "generate_stream"))
    return withBody(`curl -sSN ${url}`, GenerateRequest.make(attempt))
  }
  // Bytes that may be no text have no JSON.
  const isBinary = ({ datatype, form }: Attempt["model"]["outputs"][number]) =>
    !hasJson(datatype) || (datatype === "BYTES" && form === "tensor")
  const isJson = (input: Input) => isJsonTensor(input.tensor) && fileOf(input) === undefined
  const header = headerOf(attempt, isJson, isBinary)
  const saved = model.outputs.some(isBinary) ? " -o response.bin" : ""
  const command = `curl -sS ${quoted(origin + pathOf(model, "infer"))}${saved}`
  const binary = inputs.filter((input) => !isJson(input))
  if (binary.length === 0) return withBody(command, header)
  const files: Array<SnippetFile> = []
  const parts = binary.flatMap((input) => partsOf(input, files))
  const length = new TextEncoder().encode(header).length
  const text = [
    `{ printf %s ${quoted(header)}`,
    ...parts.map((part) => `  ${part}`),
    `} | ${command} -H 'Inference-Header-Content-Length: ${length}' --data-binary @-`,
  ]
  return { text: text.join("\n"), files }
}

const withBody = (command: string, body: string): Snippet => {
  const json = `${command} -H 'Content-Type: application/json'`
  if (body.length <= maxArgument) return { text: `${json} -d ${quoted(body)}`, files: [] }
  return {
    text: `${json} --data-binary @request.json`,
    files: [{ name: "request.json", bytes: new TextEncoder().encode(body) }],
  }
}

/** Commands that print the bytes of an input. */
const partsOf = (input: Input, files: Array<SnippetFile>): ReadonlyArray<string> => {
  const { tensor } = input
  const file = fileOf(input)
  if (isList(tensor.data) && file !== undefined) {
    files.push(file)
    // Each element of BYTES comes after its length.
    const length = new Uint8Array(new Uint32Array([file.bytes.length]).buffer)
    return [printed(length), `cat ./${quoted(file.name)}`]
  }
  const bytes = toBytes(tensor)
  if (bytes.length <= maxPrinted) return [printed(bytes)]
  const saved = file ?? { name: `${input.field.name.replaceAll(/[^\w.-]/g, "_")}.bin`, bytes }
  files.push(saved)
  return [`cat ./${quoted(saved.name)}`]
}

const printed = (bytes: Uint8Array): string =>
  `printf %b '${Array.from(bytes, (byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("")}'`

/** A word of a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`
