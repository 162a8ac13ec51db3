/** Clients of sequences over HTTP and gRPC, which share no code with the server's front ends. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { credentials, Client } from "@grpc/grpc-js"
import {
  ModelInferRequestSchema,
  type ModelInferResponse,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
} from "@nereid/protocol/grpc_service"
import { Effect } from "effect"
import { setImmediate } from "node:timers/promises"
import type { Scenario, Step } from "./Scenario.ts"

export interface Ports {
  readonly http: number
  readonly grpc: number
}

/** The element of OUTPUT, or the message of the error. */
export type Answer = number | string

/** A server whose metrics show what waits. */
export interface ObservedPorts extends Ports {
  readonly metrics: number
}

/** Sends all steps in their order, without waiting except for `afterAnswers` of a stream. */
export type Send<P extends Ports = Ports> = (
  ports: P,
  model: string,
  steps: ReadonlyArray<Step>,
) => Promise<ReadonlyArray<Answer>>

const shapeOf = (batches: boolean, rows: number, width: number) => (batches ? [rows, width] : [width])

/** The parameters of a step that are numbers, without those that it does not have. */
const numbersOf = ({ timeout, priority, number, maxIdle }: Step) =>
  Object.entries({ timeout, priority, sequence_number: number, sequence_max_idle: maxIdle }).flatMap(
    ([name, value]): ReadonlyArray<readonly [string, bigint]> => (value === undefined ? [] : [[name, value]]),
  )

const body = (step: Step, batches: boolean): string => {
  const { id, flags, input, rows = 1, width = 1 } = step
  const parameters = [
    `"sequence_id":${typeof id === "string" ? JSON.stringify(id) : id}`,
    `"sequence_start":${flags.includes("S")}`,
    `"sequence_end":${flags.includes("E")}`,
    ...numbersOf(step).map(([name, value]) => `"${name}":${value}`),
  ]
  const data = Array<number>(rows * width).fill(input)
  const tensor = { name: "INPUT", shape: shapeOf(batches, rows, width), datatype: "INT32", data }
  return `{"parameters":{${parameters.join()}},"inputs":[${JSON.stringify(tensor)}]}`
}

const overHttp =
  (batches: boolean): Send =>
  ({ http }, model, steps) =>
    Promise.all(
      steps.map(async (step) => {
        const url = `http://127.0.0.1:${http}/v2/models/${model}/infer`
        const response = await fetch(url, { method: "POST", body: body(step, batches) })
        const answer: { readonly error?: string; readonly outputs?: ReadonlyArray<{ readonly data: [number] }> } =
          JSON.parse(await response.text())
        return answer.error ?? answer.outputs?.[0]?.data[0] ?? "no output"
      }),
    )

/** The bytes of a ModelInferRequest. */
export const inferRequest = (step: Step, model: string, batches: boolean) => {
  const { id, flags, input, rows = 1, width = 1 } = step
  return toBinary(
    ModelInferRequestSchema,
    create(ModelInferRequestSchema, {
      modelName: model,
      parameters: {
        sequence_id: {
          parameterChoice:
            typeof id === "string"
              ? { case: "stringParam", value: id }
              : { case: "int64Param", value: BigInt.asIntN(64, id) },
        },
        sequence_start: { parameterChoice: { case: "boolParam", value: flags.includes("S") } },
        sequence_end: { parameterChoice: { case: "boolParam", value: flags.includes("E") } },
        ...Object.fromEntries(
          numbersOf(step).map(([name, value]) => [name, { parameterChoice: { case: "int64Param" as const, value } }]),
        ),
      },
      inputs: [{ name: "INPUT", datatype: "INT32", shape: shapeOf(batches, rows, width).map(BigInt) }],
      rawInputContents: [new Uint8Array(Int32Array.from(Array<number>(rows * width).fill(input)).buffer)],
    }),
  )
}

/** The element of OUTPUT. */
export const outputOf = ({ rawOutputContents, outputs }: ModelInferResponse): Answer => {
  const [raw] = rawOutputContents
  return raw === undefined ? (outputs[0]?.contents?.intContents[0] ?? "no output") : Buffer.from(raw).readInt32LE()
}

const connect = ({ grpc }: Ports) => new Client(`127.0.0.1:${grpc}`, credentials.createInsecure())

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes)

const overGrpc =
  (batches: boolean): Send =>
  async (ports, model, steps) => {
    const client = connect(ports)
    const answers = await Promise.all(
      steps.map(
        (step) =>
          new Promise<Answer>((resolve) =>
            client.makeUnaryRequest(
              "/inference.GRPCInferenceService/ModelInfer",
              asBuffer,
              (bytes) => fromBinary(ModelInferResponseSchema, bytes),
              inferRequest(step, model, batches),
              (error, response) =>
                resolve(response === undefined ? (error?.details ?? "no answer") : outputOf(response)),
            ),
          ),
      ),
    )
    client.close()
    return answers
  }

/** Responses arrive in the order of their requests. */
export const overStream =
  (batches: boolean): Send =>
  async (ports, model, steps) => {
    const client = connect(ports)
    const answers: Array<Answer> = []
    let changed = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<void>()
    const stream = client.makeBidiStreamRequest("/inference.GRPCInferenceService/ModelStreamInfer", asBuffer, (bytes) =>
      fromBinary(ModelStreamInferResponseSchema, bytes),
    )
    stream.on("data", ({ errorMessage, inferResponse }: ReturnType<typeof empty>) => {
      answers.push(inferResponse === undefined || errorMessage !== "" ? errorMessage : outputOf(inferResponse))
      changed.resolve()
      changed = Promise.withResolvers()
    })
    stream.on("error", ended.reject)
    stream.on("end", ended.resolve)
    for (const [index, step] of steps.entries()) {
      while (step.afterAnswers === true && answers.length < index) await Promise.race([changed.promise, ended.promise])
      stream.write(inferRequest(step, model, batches))
    }
    stream.end()
    await ended.promise
    client.close()
    return answers
  }

const empty = () => create(ModelStreamInferResponseSchema)

const streamName = "gRPC stream"

export const transports = (maxBatchSize: number): ReadonlyArray<readonly [name: string, send: Send]> => [
  ["HTTP", overHttp(maxBatchSize > 0)],
  ["gRPC", overGrpc(maxBatchSize > 0)],
  [streamName, overStream(maxBatchSize > 0)],
]

/** Sends each step by a call, which the server has taken before the next call. */
const inOrder =
  (send: Send): Send<ObservedPorts> =>
  async (ports, model, steps) => {
    const answers: Array<Promise<ReadonlyArray<Answer>>> = []
    for (const step of steps) {
      if (step.afterAnswers === true) await Promise.all(answers)
      const answer = send(ports, model, [step])
      answers.push(answer)
      if (answers.length === steps.length) break
      // A refused step is never among those taken.
      const answered = new AbortController()
      const onEnd = () => answered.abort()
      void answer.then(onEnd, onEnd)
      while (!answered.signal.aborted && (await taken(ports)) < answers.length) await setImmediate()
    }
    return (await Promise.all(answers)).flat()
  }

const takenMetrics = /^nv_inference_(?:pending_request_count|request_success|request_failure)\{.* (\d+)$/gm

/** Requests of all models that wait, or have an answer; 0 while the server does not say. */
const taken = async ({ metrics }: ObservedPorts): Promise<number> => {
  const text = await fetch(`http://127.0.0.1:${metrics}/metrics`).then(
    (response) => response.text(),
    () => "",
  )
  return Array.from(text.matchAll(takenMetrics), ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0)
}

/** The transports of a scenario. Calls that do not wait for one another are in the order of the steps. */
export const transportsOf = ({
  hold,
  oneTransport,
  maxBatchSize,
}: Scenario): ReadonlyArray<readonly [name: string, send: Send<ObservedPorts>]> =>
  transports(maxBatchSize)
    .filter(([name]) => name === streamName || oneTransport !== true)
    .map(([name, send]) => [name, hold === undefined || name === streamName ? send : inOrder(send)])

/** Executions by their batch sizes. */
export const sizes = async ({ http }: Ports, model: string): Promise<Readonly<Record<string, number>>> => {
  const response = await fetch(`http://127.0.0.1:${http}/v2/models/${model}/stats`)
  const answer: {
    readonly model_stats: ReadonlyArray<{
      readonly batch_stats: ReadonlyArray<{
        readonly batch_size: number
        readonly compute_infer: { readonly count: number }
      }>
    }>
  } = JSON.parse(await response.text())
  const [stats] = answer.model_stats
  return Object.fromEntries((stats?.batch_stats ?? []).map((batch) => [batch.batch_size, batch.compute_infer.count]))
}

/** A GET, or a POST with this body. */
export const http = (ports: Pick<Ports, "http">, path: string, body?: string) =>
  Effect.promise(async () => {
    const response = await fetch(
      `http://127.0.0.1:${ports.http}${path}`,
      body === undefined ? {} : { method: "POST", body },
    )
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** The value of a metric of the only model, or of the first line with these labels. */
export const metric = (ports: { readonly metrics: number }, name: string, labels = "") =>
  Effect.promise(async () => {
    const text = await (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`)).text()
    const line = text.split("\n").find((line) => line.startsWith(`${name}{`) && line.includes(labels))
    return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")))
  })
