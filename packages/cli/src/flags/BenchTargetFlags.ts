/** Flags of `nereid bench` for the server, the model and the protocol. */
import type { BenchmarkOptions } from "@nereid/bench/internal/benchmark/Benchmark"
import * as Endpoint from "@nereid/bench/internal/target/Endpoint"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Result } from "effect"
import { CliError, type Command, Flag } from "effect/cli"
import * as ConnectionFlags from "./ConnectionFlags.ts"
import * as FlagKind from "./FlagKind.ts"

export const flags = {
  model: FlagKind.optional(
    "model",
    { takes: "name", aliases: ["m"], description: "The model to ask; it must be given" },
    Result.succeed,
  ),
  version: FlagKind.optional(
    "model-version",
    { takes: "version", aliases: ["x"], description: "Its version; by default the server's choice" },
    Result.succeed,
  ),
  url: FlagKind.optional(
    "url",
    {
      takes: "url",
      aliases: ["u"],
      description:
        "The server: grpc://host:port, grpcs://, http:// or https://, or host:port with --protocol (localhost:8000, for grpc localhost:8001)",
    },
    Result.succeed,
  ),
  protocol: FlagKind.optional(
    "protocol",
    { takes: "http|grpc", aliases: ["i"], description: "How it is asked, where the URL does not say so (http)" },
    (text) => {
      const protocol = (["http", "grpc"] as const).find((each) => each === text.toLowerCase())
      return protocol === undefined ? Result.fail("http, grpc") : Result.succeed(protocol)
    },
  ),
  streaming: Flag.Boolean("streaming").pipe(
    Flag.withoutNegation,
    Flag.withDescription("Over gRPC: by ModelStreamInfer, many requests on one stream; takes no value"),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  tensors: FlagKind.withDefault(
    "tensor-format",
    {
      takes: "binary|json",
      aliases: ["input-tensor-format", "output-tensor-format"],
      description: "Over HTTP: whether tensors are sent and asked for as binary data or as text",
    },
    "binary",
    (text) => (["binary", "json"].includes(text) ? Result.succeed(text) : Result.fail("binary, json")),
  ),
  ...ConnectionFlags.flags,
}

type Values = Command.Command.Config.Infer<typeof flags>

type Options = Pick<BenchmarkOptions, "endpoint" | "tls" | "protocol" | "model" | "headers">

/** Fails where flags do not fit together. */
export const options = (values: Values): Effect.Effect<Options, CliError.UserError> =>
  Effect.try({
    try: () => read(values),
    catch: (error) => new CliError.UserError({ cause: errorMessage(error) }),
  })

const read = ({ model, version, url, protocol, streaming, tensors, headers, ...tls }: Values): Options => {
  if (model === undefined) throw new Error("--model must say which model to ask, as in nereid bench --model=digits")
  const endpoint = Endpoint.parse(url ?? "localhost", protocol)
  if (streaming && endpoint.protocol !== "grpc") throw new Error("--streaming is for gRPC: add --protocol=grpc")
  if (tensors === "json" && endpoint.protocol !== "http") throw new Error("--tensor-format=json is for HTTP")
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
