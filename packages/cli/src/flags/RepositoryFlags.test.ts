/** The flags of a model repository, and the options that they set. */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { CliOutput, Command } from "effect/cli"
import * as NodeServices from "../NodeServices.ts"
import * as RepositoryFlags from "./RepositoryFlags.ts"

const parse = (line: string) =>
  Effect.gen(function* () {
    let parsed: unknown
    const command = Command.make("serve", { flags: RepositoryFlags.flags }, ({ flags }) =>
      Effect.map(Effect.result(RepositoryFlags.options(flags)), (result) => {
        parsed = Result.isSuccess(result) ? result.success : result.failure.message
      }),
    )
    const presenter = CliOutput.layerPresenter({
      present: (event) =>
        Effect.sync(() => {
          if (event._tag === "InvalidInvocation") parsed = event.errors.map(({ message }) => message).join("\n")
        }),
    })
    yield* Command.runWith(command, { version: "0" })(line.split(" ").filter((word) => word !== "")).pipe(
      Effect.ignore,
      Effect.provide(Layer.merge(NodeServices.layer, presenter)),
    )
    return parsed
  })

it.effect.each([
  ["--model-repository=/a", { directories: ["/a"], control: "none", load: [], autoComplete: true, exitOnError: true }],
  ["--model-repository /a --model-store=/b", { directories: ["/a", "/b"], pollInterval: "15 seconds" }],
  [
    "--model-repository=/a --model-control-mode=poll --repository-poll-secs=3",
    { control: "poll", pollInterval: "3 seconds" },
  ],
  [
    "--model-repository=/a --model-control-mode=poll --repository-poll-secs=0",
    { control: "poll", pollInterval: "0 seconds" },
  ],
  [
    "--model-repository=/a --model-control-mode=EXPLICIT --load-model=m --load-model=n",
    { control: "explicit", load: ["m", "n"] },
  ],
  ["--model-repository=/a --model-config-name=big --exit-on-error=0", { configName: "big", exitOnError: false }],
  ["--model-repository=/a --disable-auto-complete-config", { autoComplete: false, partialModelLoad: false }],
  ["--model-repository=/a --partial-model-load=true", { partialModelLoad: true, namespaces: false }],
  // A12.namespacing@command
  ["--model-repository=/a --model-repository=/b --model-namespacing=1", { namespaces: true }],
  ["--model-repository=/a --strict-model-config=true", { autoComplete: false }],
  ["--model-repository=/a --backend-config=onnxruntime,default-max-batch-size=16", { defaultMaxBatchSize: 16 }],
  ["--model-repository=/a --backend-config=default-max-batch-size=0", { defaultMaxBatchSize: 0 }],
  ["--model-repository=/a --backend-config=onnxruntime,idle-timeout=60", { idleTimeout: "60 seconds" }],
  ["--model-repository=/a --backend-directory=/backends", { python: { backendDirectory: "/backends" } }],
  ["--model-store=/mnt/models --single-model=flowers", { directories: ["/mnt/models"], singleModel: "flowers" }],
  // P4.flags@local
  [
    "--model-repository=/a --backend-config=python,shm-default-byte-size=1048576 --backend-config=python,shm-growth-byte-size=1048576 --backend-config=python,shm_message_queue_size=1000 --backend-config=python,shm-region-prefix-name=x --backend-config=python,stub-timeout-seconds=30",
    { directories: ["/a"], partialModelLoad: false },
  ],
  // P4.flags.threads@local
  [
    "--model-repository=/a --backend-config=python,thread-pool-size=8 --backend-config=python,inherited-variables=A,B_*",
    { python: { callThreads: 8, inheritEnv: ["A", "B_*"] } },
  ],
  [
    "--model-repository=s3://bucket/models --model-repository=/a --model-cache-directory=/c --model-cache-size=1000",
    { directories: ["s3://bucket/models", "/a"], storage: { cacheDirectory: "/c", maxCacheBytes: 1000 } },
  ],
  ["--exit-on-error=false", undefined],
] as const)("%s", ([line, expected]) =>
  Effect.gen(function* () {
    const parsed = yield* parse(line)
    if (expected === undefined) expect(parsed).toBeUndefined()
    else expect(parsed).toMatchObject(expected)
  }),
)

// A6.mode.explicit.all-alone@command, A6.mode.flags@command, A6.cloud@command
it.effect.each([
  ["--model-control-mode=explicit", "--model-control-mode=explicit requires --model-repository"],
  ["--model-control-mode=some", 'Invalid value for flag --model-control-mode: "some". Expected: none, explicit, poll'],
  ["--single-model=flowers", "--single-model requires --model-repository"],
  ["--model-repository=/a --load-model=m", "--load-model requires --model-control-mode=explicit"],
  [
    "--model-repository=/a --model-control-mode=explicit --load-model=* --load-model=m",
    "Wildcard model name '*' must be the ONLY startup model if specified at all.",
  ],
  ["--model-repository=s3://", "No bucket name found in path: s3://"],
  ["--model-repository=s3://Bucket/models", "Invalid bucket name: 'Bucket'"],
  ["--model-repository=as://account", "Invalid azure storage path: as://account"],
  ["--model-repository=as://account?sig=secret", '"as://account?…"'],
  ["--model-repository=ftp://host/models", "'ftp://' is not supported"],
  ["--backend-config=onnxruntime,default-max-batchsize=4", "Expected: onnxruntime,default-max-batch-size=4"],
  ["--backend-config=python", "Expected: python,thread-pool-size=32"],
  ["--backend-config=python,thread-pool-size=0", "Expected: an integer from 1 to 10000"],
  ["--backend-config=python,shm-default-byte-size=4096", "Expected: an integer of at least 1048576"],
  ["--backend-config=onnxruntime,idle-timeout=1h", "Expected: an integer from 0 to 86400"],
  ["--backend-config=onnxruntime,default-max-batch-size=-1", "Expected: an integer from 0 to 2147483647"],
] as const)("%s is refused", ([line, message]) =>
  Effect.gen(function* () {
    expect(yield* parse(line)).toContain(message)
  }),
)
