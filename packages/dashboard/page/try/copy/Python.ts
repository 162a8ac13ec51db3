/** The request as a Python program: with `tritonclient.http`, or with Python alone for a stream, which that lacks. */
import type { Attempt, Input, ParameterValue } from "../call/Attempt.ts"
import { pathOf, wireShape } from "../call/Attempt.ts"
import * as GenerateRequest from "../call/GenerateRequest.ts"
import { isList, numberText } from "../tensor/Tensor.ts"
import { base64, fileOf, filesOf, lines, shortText, type Snippet } from "./Snippet.ts"

export const make = (attempt: Attempt, origin: string): Snippet =>
  attempt.model.decoupled ? streamed(attempt, origin) : unary(attempt, origin)

const unary = (attempt: Attempt, origin: string): Snippet => {
  const { model, inputs } = attempt
  const { protocol, host } = new URL(origin)
  const secure = protocol === "https:" ? ", ssl=True" : ""
  const encoded = inputs.map((input) => arrayOf(input, wireShape(model, input.tensor.shape)))
  const text = [
    ...(encoded.some((array) => array.includes("base64.")) ? ["import base64"] : []),
    "import numpy as np",
    "import tritonclient.http as triton",
    "",
    `client = triton.InferenceServerClient(${literal(host)}${secure})`,
    "inputs = []",
    ...inputs.flatMap(({ field, tensor }, index) => {
      const shape = wireShape(model, tensor.shape).join(", ")
      return [
        `inputs.append(triton.InferInput(${literal(field.name)}, [${shape}], ${literal(field.datatype)}))`,
        `inputs[-1].set_data_from_numpy(${encoded[index] ?? ""})`,
      ]
    }),
    `result = client.infer(${literal(model.name)}, inputs${optionsOf(attempt)})`,
    'for output in result.get_response()["outputs"]:',
    '    print(output["name"], result.as_numpy(output["name"]))',
  ]
  return { text: text.join("\n"), files: filesOf(inputs) }
}

const dtypes: Readonly<Record<string, string>> = {
  BOOL: "bool",
  UINT8: "uint8",
  UINT16: "uint16",
  UINT32: "uint32",
  UINT64: "uint64",
  INT8: "int8",
  INT16: "int16",
  INT32: "int32",
  INT64: "int64",
  FP16: "float16",
  // The client makes BF16 of these.
  BF16: "float32",
  FP32: "float32",
  FP64: "float64",
}

const arrayOf = (input: Input, wire: ReadonlyArray<number>): string => {
  const { tensor } = input
  const { datatype, data } = tensor
  const file = fileOf(input)
  const shape = `(${wire.join(", ")}${wire.length === 1 ? "," : ""})`
  if (isList(data)) {
    const list = file === undefined ? data.map(bytesOf) : [`open(${literal(file.name)}, "rb").read()`]
    return `np.array([${list.join(", ")}], dtype=np.object_).reshape(${shape})`
  }
  const dtype = `np.${datatype === "BOOL" ? "bool_" : (dtypes[datatype] ?? "float32")}`
  if (file !== undefined && datatype === "BF16") {
    const words = `np.fromfile(${literal(file.name)}, dtype=np.uint16).astype(np.uint32) << 16`
    return `(${words}).view(np.float32).reshape(${shape})`
  }
  if (file !== undefined) return `np.fromfile(${literal(file.name)}, dtype=${dtype}).reshape(${shape})`
  const numbers = Array.from<number | bigint, string>(data, (value) => numberOf(datatype, value))
  return `np.array([${lines(numbers, "")}], dtype=${dtype}).reshape(${shape})`
}

const numberOf = (datatype: string, value: number | bigint): string => {
  if (datatype === "BOOL") return value === 0 ? "False" : "True"
  if (Number.isNaN(value)) return "np.nan"
  if (value === Infinity || value === -Infinity) return value === Infinity ? "np.inf" : "-np.inf"
  return numberText(datatype, value)
}

const bytesOf = (element: Uint8Array): string => {
  const text = shortText(element)
  return text === undefined ? `base64.b64decode(${literal(base64(element))})` : `${literal(text)}.encode()`
}

/** A string of JSON is one of Python: a lone surrogate cannot be in bytes of UTF-8, from which all texts come. */
const literal = (text: string): string => JSON.stringify(text)

const optionsOf = ({ model, id, parameters, sequence }: Attempt): string => {
  const { timeout, priority, ...others } = parameters
  const free = Object.entries(others).map(([name, value]) => `${literal(name)}: ${valueOf(value)}`)
  return [
    ...(model.version === "" ? [] : [`, model_version=${literal(model.version)}`]),
    ...(id === "" ? [] : [`, request_id=${literal(id)}`]),
    ...(timeout === undefined ? [] : [`, timeout=${String(timeout)}`]),
    ...(priority === undefined ? [] : [`, priority=${String(priority)}`]),
    ...(sequence === undefined ? [] : [`, sequence_id=${valueOf(sequence.id)}`]),
    ...(sequence?.isStart === true ? [", sequence_start=True"] : []),
    ...(sequence?.isEnd === true ? [", sequence_end=True"] : []),
    ...(free.length === 0 ? [] : [`, parameters={${free.join(", ")}}`]),
  ].join("")
}

const valueOf = (value: ParameterValue): string => {
  if (typeof value === "boolean") return value ? "True" : "False"
  return typeof value === "string" ? literal(value) : String(value)
}

const streamed = (attempt: Attempt, origin: string): Snippet => {
  const text = [
    "import urllib.request  # tritonclient.http has no streams",
    "",
    "request = urllib.request.Request(",
    `    ${literal(origin + pathOf(attempt.model, "generate_stream"))},`,
    `    data=${literal(GenerateRequest.make(attempt))}.encode(),`,
    '    headers={"content-type": "application/json"},',
    ")",
    "with urllib.request.urlopen(request) as events:",
    "    for line in events:",
    '        if line.startswith(b"data: "):',
    "            print(line[6:].decode().strip(), flush=True)",
  ]
  return { text: text.join("\n"), files: [] }
}
