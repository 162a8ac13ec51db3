/**
 * Benchmarks one model of a server: reads the model's metadata, makes requests, sends each once as a trial, and returns
 * the load for Sweep.ts.
 */
import type { Parameters } from "@nereid/core/internal/request/Request"
import { emptyFinalResponse } from "@nereid/core/internal/wire/KnownParameters"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import type { Address } from "../target/Address.ts"
import type { ServerUrl } from "@nereid/core/internal/wire/ServerUrl"
import * as GrpcModel from "../grpc/GrpcModel.ts"
import * as HttpModel from "../http1/HttpModel.ts"
import * as InputFile from "../request/InputFile.ts"
import * as Inputs from "../request/Inputs.ts"
import type { Target } from "../target/Load.ts"
import type { ModelClient, ModelName, Protocol } from "../target/ModelClient.ts"
import * as ModelTraits from "../target/ModelTraits.ts"
import * as TrialRequests from "./TrialRequests.ts"
import * as Random from "@nereid/core/internal/synthetic/Random"
import * as ServerCounters from "../target/ServerCounters.ts"

export interface BenchmarkOptions {
  readonly endpoint: ServerUrl
  /** TLS options for a secure endpoint. */
  readonly tls: NonNullable<Address["tls"]>
  readonly protocol: Protocol
  readonly model: ModelName
  /** Sent with every request; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Parameters of every request. */
  readonly parameters: Parameters
  /** The text of a file with inputs, or the options of synthetic ones. */
  readonly inputs: { readonly file: string } | { readonly synthetic: Inputs.InputOptions }
  readonly seed: number
  /** Whether replies must have the length of the first one. */
  readonly checkLengths: boolean
}

export interface Benchmark {
  readonly model: ModelTraits.ModelTraits
  /** First request, and its responses. */
  readonly request: WireRequest
  readonly responses: ReadonlyArray<WireResponse>
  /** Different requests, which take turns. */
  readonly requests: number
  /** Rows of a request; 1 where the model does not batch. */
  readonly batchSize: number
  readonly remarks: ReadonlyArray<string>
  readonly target: Target
  readonly statistics: () => Promise<ServerCounters.Counters | undefined>
  readonly close: () => void
}

/**
 * Prepares a benchmark.
 * @throws Error if the server or model is missing, inputs are missing, or a reply is invalid
 */
export const prepare = async (options: BenchmarkOptions): Promise<Benchmark> => {
  const { protocol, model: name, checkLengths } = options
  const client = connect(options)
  try {
    const traits = ModelTraits.make(await client.metadata(), await client.config())
    const requests = requestsOf(options, traits)
    const hasLengths = checkLengths && protocol !== "http-json"
    const trial = await TrialRequests.run(client, traits, requests, hasLengths)
    const [request] = requests
    return {
      model: traits,
      request,
      responses: trial.responses,
      requests: requests.length,
      batchSize: traits.maxBatchSize > 0 ? (request.inputs[0]?.shape[0] ?? 1) : 1,
      remarks: trial.remarks,
      target: client.target(trial.requests, trial.traits),
      statistics: async () => ServerCounters.read(await client.statistics(), name.name),
      close: () => client.close(),
    }
  } catch (error) {
    client.close()
    throw error
  }
}

const connect = ({ endpoint, tls, protocol, model, headers }: BenchmarkOptions): ModelClient => {
  const { host, port, path, secure } = endpoint
  const address: Address = { host, port, ...(secure ? { tls } : {}) }
  return protocol === "grpc" || protocol === "grpc-stream"
    ? GrpcModel.make(address, { model, headers, streaming: protocol === "grpc-stream" })
    : HttpModel.make(address, { model, headers, path, json: protocol === "http-json" })
}

const requestsOf = (
  { protocol, model, parameters, inputs, seed }: BenchmarkOptions,
  traits: ModelTraits.ModelTraits,
): readonly [WireRequest, ...ReadonlyArray<WireRequest>] => {
  const random = Random.make(seed)
  const wireRequests =
    "file" in inputs
      ? InputFile.read(inputs.file, model, traits)
      : Array.from({ length: inputs.synthetic.variants }, (): WireRequest => {
          const { name: modelName, version: modelVersion } = model
          const tensors = Inputs.make(traits, inputs.synthetic, random)
          return { modelName, modelVersion, id: "", parameters: {}, inputs: tensors, outputs: [] }
        })
  // Without this parameter, the last reply cannot be detected.
  const streamParameters: Parameters =
    protocol === "grpc-stream" && traits.decoupled ? { [emptyFinalResponse]: true } : {}
  const [first, ...others] = wireRequests.map((request) => ({
    ...request,
    id: "",
    parameters: { ...request.parameters, ...parameters, ...streamParameters },
  }))
  if (first === undefined) throw new Error("there are no requests to send")
  return [first, ...others]
}
