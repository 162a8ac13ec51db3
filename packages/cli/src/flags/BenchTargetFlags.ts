/** Flags of `nereid bench` for the server, the model and the protocol. */
import type { BenchmarkOptions } from "@nereid/bench/internal/benchmark/Benchmark"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Result } from "effect"
import { CliError, type Command, Flag } from "effect/cli"
import * as ConnectionFlags from "./ConnectionFlags.ts"
import * as FlagKind from "./FlagKind.ts"

export const flags = {
  model: FlagKind.optional(
    "model",
    { takes: "name", aliases: ["m"], description: "Model to call; required" },
    Result.succeed,
  ),
  version: FlagKind.optional(
    "model-version",
    { takes: "version", aliases: ["x"], description: "Model version to call", fallback: "the server's choice" },
    Result.succeed,
  ),
  url: FlagKind.optional(
    "url",
    {
      takes: "url",
      aliases: ["u"],
      description: "Server URL with http://, https://, grpc:// or grpcs://, or host:port with --protocol",
      fallback: "localhost:8000, for gRPC localhost:8001",
    },
    Result.succeed,
  ),
  protocol: FlagKind.optional(
    "protocol",
    { takes: "http|grpc", aliases: ["i"], description: "Protocol of a URL without a scheme", fallback: "http" },
    (text) => {
      const protocol = (["http", "grpc"] as const).find((each) => each === text.toLowerCase())
      return protocol === undefined ? Result.fail("http, grpc") : Result.succeed(protocol)
    },
  ),
  streaming: Flag.Boolean("streaming").pipe(
    Flag.withoutNegation,
    Flag.withDescription("Send many requests on one gRPC stream (ModelStreamInfer); takes no value"),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  tensors: FlagKind.withDefault(
    "tensor-format",
    {
      takes: "binary|json",
      aliases: ["input-tensor-format", "output-tensor-format"],
      description: "Format of tensors over HTTP, in requests and responses",
    },
    "binary",
    (text) => (["binary", "json"].includes(text) ? Result.succeed(text) : Result.fail("binary, json")),
  ),
  ...ConnectionFlags.flags,
}

type Values = Command.Command.Config.Infer<typeof flags>

type Options = Pick<BenchmarkOptions, "endpoint" | "tls" | "protocol" | "model" | "headers">

/** Fails if flags contradict each other. */
export const options = (values: Values): Effect.Effect<Options, CliError.UserError> =>
  Effect.try({
    try: () => read(values),
    catch: (error) => new CliError.UserError({ cause: errorMessage(error) }),
  })

const read = ({ model, version, url, protocol, streaming, tensors, headers, ...tls }: Values): Options => {
  if (model === undefined) throw new Error("--model is required, as in nereid bench --model=digits")
  const endpoint = Result.getOrThrow(ServerUrl.parse(url ?? "localhost", protocol ?? "http"))
  if (protocol !== undefined && endpoint.protocol !== protocol)
    throw new Error(`--protocol=${protocol} contradicts ${url}`)
  if (streaming && endpoint.protocol !== "grpc") throw new Error("--streaming requires gRPC: add --protocol=grpc")
  if (tensors === "json" && endpoint.protocol !== "http")
    throw new Error("--tensor-format=json requires HTTP: omit --protocol=grpc")
  const http = tensors === "json" ? "http-json" : "http"
  const grpc = streaming ? "grpc-stream" : "grpc"
  return {
    endpoint,
    protocol: endpoint.protocol === "grpc" ? grpc : http,
    model: { name: model, version: version ?? "" },
    headers: Object.fromEntries(headers),
    tls: { ...ConnectionFlags.tls(tls, endpoint.secure, "--url"), servername: endpoint.host },
  }
}
