/** Text before the table of a benchmark: the server, the requests, and the load. */
import type { Benchmark, BenchmarkOptions } from "@nereid/bench/internal/benchmark/Benchmark"
import * as Level from "@nereid/bench/internal/load/Level"
import type { Protocol } from "@nereid/bench/internal/target/ModelClient"
import { print } from "@nereid/core/internal/tensor/TensorSpec"
import type { WireTensor } from "@nereid/core/internal/wire/WireRequest"
import type { LoadOptions } from "../flags/BenchLoadFlags.ts"

const protocols: { readonly [P in Protocol]: string } = {
  grpc: "gRPC",
  "grpc-stream": "gRPC streams",
  http: "HTTP, binary tensors",
  "http-json": "HTTP, JSON tensors",
}

/** The name and the protocol. */
export const title = ({ model, protocol }: BenchmarkOptions): string =>
  `${model.name}${model.version === "" ? "" : ` ${model.version}`} over ${protocols[protocol]}`

export const address = ({ endpoint: { host, port, path, secure } }: BenchmarkOptions): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}${path}${secure ? " (TLS)" : ""}`

/** Describes the method of measurement in one line. */
export const method = ({ protocol }: BenchmarkOptions, load: LoadOptions): string => {
  const round = "seconds" in load.extent ? `${load.extent.seconds} s` : `${load.extent.requests} requests`
  const rounds = load.rounds === 1 ? `one round of ${round}` : `medians of ${load.rounds} rounds of ${round}`
  const warmUp =
    load.warmUp !== undefined && "seconds" in load.warmUp ? `, after a warm-up of ${load.warmUp.seconds} s` : ""
  const open = load.levels.some((level) => "times" in level || Level.isOpen(level))
  const single = protocol === "http" || protocol === "http-json"
  const shared = load.connections === 1 ? "one connection" : `up to ${load.connections} connections`
  const connections = single ? "one connection for each request in flight" : shared
  return `${rounds}${warmUp}; ${connections}${open ? `, up to ${load.maxOutstanding} requests in flight` : ""}${deadline(load)}`
}

const deadline = ({ deadline: limit }: LoadOptions): string => {
  if (limit === undefined) return ""
  return `; deadline of ${limit.milliseconds} ms${limit.isTold ? ", in each request" : ""}`
}

export const tensors = (all: ReadonlyArray<WireTensor>): string => {
  const bytes = all.reduce((sum, tensor) => sum + tensor.bytes.length, 0)
  const names = all.map(({ name, datatype, shape }) => `${name} ${print(datatype, shape)}`)
  return `${names.join(", ")}; ${bytes} bytes`
}

export const lines = (benchmark: Benchmark, options: BenchmarkOptions, load: LoadOptions): ReadonlyArray<string> => {
  const [response, ...others] = benchmark.responses
  const variants = benchmark.requests === 1 ? "" : `, ${benchmark.requests} different requests`
  const replies = others.length === 0 ? "" : `, ${others.length + 1} responses`
  return [
    `${title(options)} at ${address(options)}`,
    `request:  ${tensors(benchmark.request.inputs)}${variants}`,
    `response: ${response === undefined ? "nothing" : tensors(response.outputs)}${replies}`,
    method(options, load),
    ...benchmark.remarks.map((remark) => `note: ${remark}`),
    "",
  ]
}
