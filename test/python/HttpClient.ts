/** A client over HTTP: tensors are JSON, except those of 16-bit floats, which JSON does not have. */
import type { Answer, IndexEntry, PythonClient } from "./PythonClient.ts"
import type { JsonTensor } from "./PythonRepository.ts"
import * as TensorBytes from "./TensorBytes.ts"

const isBinary = ({ datatype }: JsonTensor) => datatype === "FP16" || datatype === "BF16"

const lengthHeader = "inference-header-content-length"

interface Reply {
  readonly error?: string
  readonly outputs?: ReadonlyArray<Omit<JsonTensor, "data"> & { readonly data?: ReadonlyArray<unknown> }>
  readonly parameters?: Readonly<Record<string, unknown>>
}

/** A request of tensors, whose binary ones are behind the JSON. */
const requestOf = (inputs: ReadonlyArray<JsonTensor>, more: object) => {
  const binary = inputs.filter(isBinary).map(({ datatype, data }) => TensorBytes.encode(datatype, data))
  const [size] = binary.map(({ length }) => length)
  const document = Buffer.from(
    JSON.stringify({
      ...more,
      inputs: inputs.map((input) => {
        const { name, datatype, shape } = input
        return isBinary(input) ? { name, datatype, shape, parameters: { binary_data_size: size } } : input
      }),
      ...(size !== undefined && { parameters: { binary_data_output: true } }),
    }),
  )
  const headers: Record<string, string> = size === undefined ? {} : { [lengthHeader]: String(document.length) }
  return { headers, body: Buffer.concat([document, ...binary]) }
}

const answerOf = async (response: Response): Promise<Answer> => {
  const body = Buffer.from(await response.arrayBuffer())
  const end = Number(response.headers.get(lengthHeader) ?? body.length)
  const { error, outputs, parameters }: Reply = JSON.parse(body.subarray(0, end).toString())
  const tensors = outputs?.map(({ name, datatype, shape, data }): JsonTensor => ({
    name,
    datatype,
    shape,
    data: data ?? TensorBytes.decode(datatype, body.subarray(end)),
  }))
  return {
    status: response.status,
    ...(error !== undefined && { error }),
    ...(tensors !== undefined && { outputs: tensors }),
    ...(parameters !== undefined && { parameters }),
  }
}

export const make = (address: string): PythonClient => {
  const get = (path: string) => fetch(`${address}/v2/${path}`)
  const post = (path: string, body: unknown, signal?: AbortSignal) =>
    fetch(`${address}/v2/${path}`, { method: "POST", body: JSON.stringify(body), signal: signal ?? null })
  const errorOf = async (response: Response): Promise<string | undefined> => {
    const text = await response.text()
    return response.status === 200 ? undefined : JSON.parse(text).error
  }
  return {
    transport: "HTTP",
    infer: async (model, inputs, { id, version, parameters, outputs, signal } = {}) => {
      const path = version === undefined ? model : `${model}/versions/${version}`
      const requested = outputs === undefined ? {} : { outputs: outputs.map((name) => ({ name })) }
      const given = { ...(id !== undefined && { id }), ...(parameters !== undefined && { parameters }), ...requested }
      const { headers, body } = requestOf(inputs, given)
      return answerOf(
        await fetch(`${address}/v2/models/${path}/infer`, { method: "POST", headers, body, signal: signal ?? null }),
      )
    },
    events: async (model, { name, data: [first] }, signal) => {
      const response = await post(`models/${model}/generate_stream`, { [name]: first }, signal)
      const text = await response.text()
      const documents = [...text.matchAll(/^data: (.*)$/gm)].map(([, document = ""]) => document)
      // An error before the first response is one document, or JSON by itself.
      if (response.status !== 200 && documents.length === 0) documents.push(text)
      return documents.map((document) => {
        const { OUT, error } = JSON.parse(document)
        return error === undefined ? String(OUT) : `error: ${error}`
      })
    },
    index: async () => {
      const entries: ReadonlyArray<IndexEntry> = JSON.parse(await (await post("repository/index", {})).text())
      return entries
    },
    config: async (model) => (await get(`models/${model}/config`)).json(),
    load: async (model, parameters = {}) => errorOf(await post(`repository/models/${model}/load`, { parameters })),
    unload: async (model) => errorOf(await post(`repository/models/${model}/unload`, {})),
    isReady: async (model) => (await get(`models/${model}/ready`)).status === 200,
    isServerReady: async () => (await get("health/ready")).status === 200,
  }
}
