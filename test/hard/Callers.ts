/** Callers that send requests all the time while something else happens. Each request must be answered. */
import { Agent, request } from "node:http"
import * as GrpcCalls from "./GrpcCalls.ts"
import type { Target } from "./Target.ts"

export interface Answer {
  readonly status: number
  readonly text: string
}

/** A request over HTTP, on a connection of its agent. */
export const http = (port: number, path: string, body: string, agent?: Agent): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request({ port, path: `/v2/${path}`, method: "POST", agent }, (response) => {
      let text = ""
      response
        .setEncoding("utf8")
        .on("data", (chunk: string) => (text += chunk))
        .on("end", () => resolve({ status: response.statusCode ?? 0, text }))
        .on("error", reject)
    })
    sent.on("error", reject).end(body)
  })

/**
 * A request with the only input, and for the only output, as binary data. The result has the output, or the text of an
 * error.
 */
export const httpBinary = (
  port: number,
  model: string,
  input: { readonly name: string; readonly datatype: string; readonly bytes: Uint8Array },
  agent?: Agent,
): Promise<{ readonly status: number; readonly output: Buffer }> => {
  const { name, datatype, bytes } = input
  const header = JSON.stringify({
    inputs: [{ name, datatype, shape: [bytes.length], parameters: { binary_data_size: bytes.length } }],
    parameters: { binary_data_output: true },
  })
  return new Promise((resolve, reject) => {
    const headers = { "inference-header-content-length": header.length }
    const sent = request({ port, path: `/v2/models/${model}/infer`, method: "POST", agent, headers }, (response) => {
      const chunks: Array<Buffer> = []
      const start = Number(response.headers["inference-header-content-length"] ?? 0)
      response
        .on("data", (chunk: Buffer) => chunks.push(chunk))
        .on("end", () => resolve({ status: response.statusCode ?? 0, output: Buffer.concat(chunks).subarray(start) }))
        .on("error", reject)
    })
    sent.on("error", reject)
    sent.write(header)
    sent.end(bytes)
  })
}

/** The body of a request for so many bytes. */
export const zeros = (count: number): string =>
  JSON.stringify({
    inputs: [{ name: "COUNT", datatype: "INT32", shape: [1], data: [count] }],
    parameters: { binary_data_output: true },
  })

/** Throws unless the server answers a small request over a connection of its own. */
export const expectAnswer = async ({ http: port }: Target): Promise<void> => {
  const { status, text } = await http(port, "models/zeros/infer", zeros(3))
  if (status !== 200) throw new Error(`a small request was answered with ${status}: ${text}`)
}

/**
 * Runs `work` while four callers of each protocol send small requests on connections that stay open. Returns the number
 * of answers. Throws what `work` throws, or at the first request that fails.
 */
export const beside = async (target: Target, work: () => Promise<unknown>): Promise<number> => {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  const session = GrpcCalls.open(target.grpc)
  const over = new AbortController()
  let answers = 0
  const caller = async (send: () => Promise<string | undefined>) => {
    while (!over.signal.aborted) {
      const problem = await send()
      if (problem !== undefined) throw new Error(`after ${answers} answers: ${problem}`)
      answers += 1
    }
  }
  const overHttp = async () => {
    const { status, text } = await http(target.http, "models/zeros/infer", zeros(3), agent)
    return status === 200 ? undefined : `HTTP ${status}: ${text}`
  }
  const small = GrpcCalls.request(3)
  const overGrpc = async () => {
    const { status, message } = await GrpcCalls.call(session, small)
    return status === "0" ? undefined : `gRPC ${status}: ${message}`
  }
  const callers = [...Array<typeof overHttp>(4).fill(overHttp), ...Array<typeof overGrpc>(4).fill(overGrpc)].map(caller)
  try {
    await Promise.all([work(), ...callers].map((one) => one.finally(() => over.abort())))
  } finally {
    agent.destroy()
    session.destroy()
  }
  return answers
}
