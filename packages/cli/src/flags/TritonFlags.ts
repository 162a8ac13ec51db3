/**
 * Flags of tritonserver without an effect here. Harmless flags are accepted with a warning. Flags that would change
 * responses are refused, unless their value is the behaviour of this server.
 */
import { Effect, Result } from "effect"
import { CliError, type Flag } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

/** Flags without an effect, by reason. */
const withoutEffect = {
  "the runtime manages threads and buffers": [
    "http-thread-count",
    "grpc-infer-thread-count",
    "grpc-infer-allocation-pool-size",
    "grpc-max-response-pool-size",
    "buffer-manager-thread-count",
    "model-load-thread-count",
  ],
  "the server process uses no GPU": [
    "pinned-memory-pool-byte-size",
    "cuda-memory-pool-byte-size",
    "cuda-virtual-address-size",
    "min-supported-compute-capability",
    "model-load-gpu-limit",
    "enable-peer-access",
    "host-policy",
    "allow-gpu-metrics",
  ],
  "agents and caches are not loaded from directories": ["repoagent-directory", "cache-directory"],
  "failed loads are not retried": ["model-load-retry-count"],
  "SageMaker and Vertex AI endpoints are not supported": [
    "sagemaker-port",
    "sagemaker-safe-port-range",
    "sagemaker-thread-count",
    "vertex-ai-port",
    "vertex-ai-thread-count",
    "vertex-ai-default-model",
  ],
}

interface Refusal {
  readonly name: string
  /** Accepted value, which is this server's behaviour; undefined if there is none. */
  readonly accepted?: string
  readonly reason: string
}

const refusals: ReadonlyArray<Refusal> = [
  { name: "reuse-http-port", accepted: "false", reason: "servers cannot share a port" },
  { name: "reuse-grpc-port", accepted: "false", reason: "servers cannot share a port" },
  { name: "allow-sagemaker", accepted: "false", reason: "SageMaker endpoints are not implemented" },
  { name: "allow-vertex-ai", accepted: "false", reason: "Vertex AI endpoints are not implemented" },
]

/** Flags without an effect that were given, by name. */
export const ignored: ReadonlyArray<Flag.Flag<ReadonlyArray<string>>> = Object.entries(withoutEffect).flatMap(
  ([reason, names]) =>
    names.map((name) =>
      FlagKind.collectedFrom(name, { takes: "any", description: `No effect: ${reason}` }, (given) =>
        Effect.succeed(FlagKind.sourceOf(name, given)),
      ),
    ),
)

export const refused: ReadonlyArray<Flag.Flag<unknown>> = refusals.map(({ name, accepted, reason }) => {
  const description =
    accepted === undefined ? `Not supported: ${reason}` : `Not supported except ${accepted}: ${reason}`
  return FlagKind.collectedFrom(name, { takes: "any", description }, (given) => {
    if (accepted !== undefined && isSame(given.text, accepted)) return Effect.void
    const source = FlagKind.sourceOf(name, given)
    const setting = accepted === undefined ? source : `${source}=${given.text}`
    return Effect.fail(new CliError.ValidationError({ message: `${setting} is not supported: ${reason}` }))
  })
})

/** Compares two values without regard to case. All spellings of a boolean are equal. */
const isSame = (value: string, accepted: string): boolean => {
  const [given, expected] = [value, accepted].map((text) => Result.getOrElse(FlagKind.parseBoolean(text), () => text))
  return value.toLowerCase() === accepted || given === expected
}
