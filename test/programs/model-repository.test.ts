/**
 * `nereid serve --model-repository` as a user meets it: the start, the index, and control over both transports (C32,
 * C33).
 */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Effect, Exit, Scope } from "effect"
import { join } from "node:path"
import { expect, it, onTestFinished } from "vitest"
import { clients } from "../../packages/server/src/grpc/GrpcServer.fixture.ts"
import { repository as writeRepository, plus } from "../fixtures/repository.ts"
import { nereid, root } from "../Program.ts"

const anyPort = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

const {
  modelConfig,
  modelReady,
  modelStatistics,
  repositoryIndex,
  repositoryModelLoad,
  repositoryModelUnload,
  serverReady,
} = GRPCInferenceService.method

/** Acquires a resource until the test ends. */
const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

const repository = () => scoped(writeRepository)

const io = (name: string, ...dims: ReadonlyArray<number>) => ({ name, data_type: "TYPE_FP32", dims })

const text = (value: string) => ({ parameterChoice: { case: "stringParam" as const, value } })

const serve = async (...args: ReadonlyArray<string>) => {
  const server = nereid("serve", ...anyPort, ...args)
  const [, http] = await server.match(/HTTPService at .*:(\d+)/)
  const [, grpc] = await server.match(/GRPCInferenceService at .*:(\d+)/)
  const post = async (path: string, body: unknown = {}) => {
    const response = await fetch(`http://127.0.0.1:${http}/v2/${path}`, { method: "POST", body: JSON.stringify(body) })
    const text = await response.text()
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
  }
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${http}/v2/${path}`)
    const text = await response.text()
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text) }
  }
  const call = await scoped(clients["grpc-js"]({ port: Number(grpc) }))
  const rpc = <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
  ) => Effect.runPromise(call(method, request))
  /** The model's output for the input 0, or the response body of an error. */
  const infer = async (name: string, version?: string) => {
    const path = version === undefined ? name : `${name}/versions/${version}`
    const { body } = await post(`models/${path}/infer`, {
      inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }],
    })
    return body.error ?? body.outputs[0].data[0]
  }
  return { server, post, get, rpc, response: infer }
}

/** Every setting of a configuration that has no effect. */
const useless = `cc_model_filenames { key: "8.0" value: "m" } metric_tags { key: "no label" value: "b" } runtime: "r"
  model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: 1 } } }
  model_operations { op_library_filename: "lib.so" } model_repository_agents { agents { name: "checksum" } }
  instance_group { secondary_devices { device_id: 1 } rate_limiter {} host_policy: "h" }
  optimization { priority: PRIORITY_MAX cuda { graphs: true } gather_kernel_buffer_threshold: 1 eager_batching: true }`

// A6.table@command, A6.version.warning@command, A11.warnings@command
it("serves a repository and a module, and lists loaded and failed models", async () => {
  const models = await repository()
  models.adding("bare", 3, 7)
  models.write("bare/first/model.onnx", "")
  models.write("bare/04/model.onnx", "")
  models.write("useless/1/model.js", "export default { execute: () => [] }")
  models.write("useless/config.pbtxt", useless)
  models.adding("wrong", 1, 1, "max_batch_size: 4\nnam: 'wrong'")
  const module = "test/fixtures/modules/kinds.ts"
  const { server, get, post, response } = await serve(
    module,
    `--model-repository=${models.path}`,
    "--exit-on-error=false",
  )
  await using _ = server
  await server.match(/bare +3 +READY +4 +X FP32\[1\] +Y FP32\[1\]\n/)
  await server.match(/wrong +1 +UNAVAILABLE\n/)
  await server.match(
    /wrong version 1 is UNAVAILABLE: failed to read text proto from .*config\.pbtxt:2:1: unknown field "nam"/,
  )
  const rule = "a version is a number above 0 without leading zeros"
  for (const name of ["04", "first"]) {
    expect(server.output).toContain(`Model 'bare': directory '${name}' is ignored: ${rule}`)
  }
  const fields = [
    "cc_model_filenames",
    "metric_tags 'no label'",
    "model_metrics of 'f'",
    "model_repository_agents",
    "model_operations",
    "runtime",
    ...["rate_limiter", "secondary_devices", "host_policy"].map((field) => `instance_group.${field}`),
    ...["priority", "cuda", "gather_kernel_buffer_threshold", "eager_batching"].map((field) => `optimization.${field}`),
  ]
  const received = server.output.match(/(?<=Model 'useless': setting without effect: )[^"]+/g)
  expect(received?.toSorted()).toEqual(fields.toSorted())
  expect(await response("bare")).toBe(7)
  // A configuration that cannot be read does not count, as in Triton.
  expect((await get("health/ready")).status).toBe(200)
  expect((await get("models/bare")).body).toMatchObject({ versions: ["3"], platform: "onnxruntime_onnx" })
  expect((await get("models/bare/config")).body).toMatchObject({
    name: "bare",
    platform: "onnxruntime_onnx",
    backend: "onnxruntime",
    max_batch_size: 4,
    version_policy: { latest: { num_versions: 1 } },
    input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
    instance_group: [{ name: "bare", kind: "KIND_CPU", count: 2 }],
    dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 0 },
    default_model_filename: "model.onnx",
  })
  const { body } = await post("repository/index")
  expect(body).toMatchObject([
    { name: expect.any(String), state: "READY" },
    { name: "bare", version: "3", state: "READY", reason: "" },
    { name: "useless", version: "1", state: "READY", reason: "" },
    { name: "wrong", version: "1", state: "UNAVAILABLE" },
  ])
  // Loading is not allowed here.
  expect(await post("repository/models/bare/load")).toMatchObject({
    status: 503,
    body: { error: "explicit model load / unload is not allowed if polling is enabled" },
  })
})

// A6.readiness.flag@command
it("without strict readiness a server is ready, whatever its models are", async () => {
  const models = await repository()
  models.adding("good", 1, 1, "version_policy { all {} }")
  models.adding("good", 2, 2)
  models.write("wrong/1/model.onnx", "")
  const lenient = ["--exit-on-error=false", "--strict-readiness=false"]
  const { server, get, rpc, response } = await serve(`--model-repository=${models.path}`, ...lenient)
  await using _ = server
  expect((await get("health/ready")).status).toBe(200)
  expect(await rpc(serverReady, {})).toMatchObject({ response: { ready: true } })
  expect([await response("good"), await response("good", "1")]).toEqual([2, 1])
  // A load by name is one request, for any number of versions.
  await server.match(/Try:\n.*\/v2\/models\/good\/infer .*\n/)
  expect(server.output.match(/curl/g)).toHaveLength(1)
})

// A6.config-name.flag@command, A11.completion.flags@command
it("configurations may have another name, and must be complete if required", async () => {
  const models = await repository()
  models.adding("bare", 1, 1)
  models.adding("named", 1, 1, "max_batch_size: -4")
  models.write(
    "named/configs/own.pbtxt",
    `max_batch_size: 3 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }`,
  )
  const { server, get } = await serve(
    `--model-repository=${models.path}`,
    "--exit-on-error=false",
    "--model-config-name=own",
    "--disable-auto-complete-config",
  )
  await using _ = server
  expect((await get("models/named/config")).body).toMatchObject({ max_batch_size: 3 })
  expect((await get("models/bare")).status).toBe(404)
})

// A6.exit-on-error@command, A6.exit-on-error.repository@command
it("ends with 1, the table and the reasons where a model cannot be loaded; and where there is nothing to serve", async () => {
  const models = await repository()
  models.adding("good", 1, 1, "version_policy { all {} }")
  models.adding("good", 2, 1)
  models.adding("wrong", 1, 1, "max_batch_size: -4")
  const failed = await nereid("serve", ...anyPort, `--model-repository=${models.path}`).ended
  expect(failed.code).toBe(1)
  const rows = ["good +1 +READY +4 +X .*", "good +2 +READY +4 +X .*", "wrong +1 +UNAVAILABLE"]
  expect(failed.output).toMatch(new RegExp(`^MODEL +VERSION +STATUS .*\n[- ]+\n${rows.join("\n")}\n\nError: `, "m"))
  expect(failed.output).toContain(
    "failed to load all models\n  wrong: 'max_batch_size' must be non-negative value for wrong",
  )
  const empty = await nereid("serve", ...anyPort).ended
  expect(empty).toMatchObject({ code: 1, output: expect.stringContaining("no models to serve: pass a module") })
  const ambiguous = await nereid("serve", "--log-f=json").ended
  const possibilities = "option '--log-f=json' is ambiguous; possibilities: '--log-format' '--log-file'"
  expect(ambiguous).toMatchObject({ code: 1, output: expect.stringContaining(possibilities) })
  const absent = await nereid("serve", ...anyPort, "--model-repository=/no/such/directory").ended
  expect(absent).toMatchObject({ code: 1, output: expect.stringContaining("cannot read /no/such/directory") })
})

// A12.rate-limiter.exit@command
it("ends with 1 and the reason where the limits of a resource prevent the executions of a model", async () => {
  const models = await repository()
  models.adding("limited", 1, 1, 'instance_group { rate_limiter { resources { name: "R" count: 4 } } }')
  const flags = ["--rate-limit=EXECUTION_COUNT", "--rate-limit-resource=R:3", `--model-repository=${models.path}`]
  const failed = await nereid("serve", ...anyPort, ...flags).ended
  expect(failed.code).toBe(1)
  expect(failed.output).toMatch(/^limited +1 +UNAVAILABLE$/m)
  const reason =
    'Resource count for "R" is limited to 3 which will prevent scheduling of one or more model instances, the minimum required count is 4'
  expect(failed.output).toContain(`  limited: version 1 is at UNAVAILABLE state: Invalid argument: ${reason};`)
})

it("a model in code may load another one as it begins, whatever is loaded at the same time", async () => {
  const models = await repository()
  const [X, Y] = ["X", "Y"].map((name) => `{ name: "${name}" data_type: TYPE_FP32 dims: 1 }`)
  const batching = `max_batch_size: 4 input ${X} output ${Y}`
  const module = join(root, "test/fixtures/modules/loading.ts")
  models.adding("child", 1, 5, "max_batch_size: 4")
  models.write("parent/config.pbtxt", `backend: "nereid" dynamic_batching {} ${batching}`)
  models.write("parent/1/model.ts", `export { Parent, ParentLive } from ${JSON.stringify(module)}`)
  const steps = [
    ["child", "X", "T"],
    ["parent", "T", "Y"],
  ].map(
    ([name, from, to]) => `step { model_name: "${name}" model_version: -1
      input_map { key: "X" value: "${from}" } output_map { key: "Y" value: "${to}" } }`,
  )
  models.write("both/config.pbtxt", `platform: "ensemble" ${batching} ensemble_scheduling { ${steps.join("\n")} }`)
  models.write("both/1/.gitkeep", "")
  const explicit = ["--model-control-mode=explicit", "--load-model=*"]
  const { server, post, response } = await serve(`--model-repository=${models.path}`, ...explicit)
  await using _ = server
  expect([await response("parent"), await response("child"), await response("both")]).toEqual([0, 5, 5])
  const names = ["parent", "child", "both"]
  for (const first of names) {
    for (const name of names) await post(`repository/models/${name}/unload`)
    const loads = await Promise.all([first, ...names].map((name) => post(`repository/models/${name}/load`)))
    expect(loads).toEqual(loads.map(() => ({ status: 200, body: undefined })))
  }
  for (const name of names) await post(`repository/models/${name}/unload`)
  expect(await post("repository/models/both/load")).toEqual({ status: 200, body: undefined })
  expect(await response("both")).toBe(5)
})

it("loads and unloads over HTTP", async () => {
  const models = await repository()
  models.adding("a", 1, 1)
  models.adding("b", 1, 2)
  const explicit = ["--model-control-mode=explicit", "--load-model=a"]
  const { server, get, post, response } = await serve(`--model-repository=${models.path}`, ...explicit)
  await using _ = server
  await server.match(/b +- +not loaded/)
  expect((await post("repository/index")).body).toEqual([
    { name: "a", version: "1", state: "READY", reason: "" },
    { name: "b" },
  ])
  expect(await response("b")).toBe("Request for unknown model: 'b' is not found")
  expect(await post("repository/models/b/load")).toEqual({ status: 200, body: undefined })
  expect([await response("b"), (await get("models/b/ready")).status]).toEqual([2, 200])
  expect(await post("repository/models/a/unload", { parameters: { unload_dependents: true } })).toMatchObject({
    status: 200,
  })
  expect(await response("a")).toBe("Request for unknown model: 'a' has no available versions")
  expect(await response("a", "1")).toBe("Request for unknown model: 'a' version 1 is not at ready state")
  expect((await get("models/a/ready")).status).toBe(400)
  expect((await get("health/ready")).status).toBe(200)
  await expect
    .poll(async () => (await post("repository/index")).body[0])
    .toEqual({
      name: "a",
      version: "1",
      state: "UNAVAILABLE",
      reason: "unloaded",
    })
  expect((await post("repository/index", { ready: true })).body).toMatchObject([{ name: "b" }])

  const file = Buffer.from(plus(9)).toString("base64")
  const parameters = { config: JSON.stringify({ max_batch_size: 32 }), "file:1/model.onnx": file }
  expect(await post("repository/models/b/load", { parameters })).toMatchObject({ status: 200 })
  expect(await response("b")).toBe(9)
  expect((await get("models/b/config")).body).toMatchObject({ max_batch_size: 32 })

  const refusals: ReadonlyArray<readonly [string, object, number, string]> = [
    ["no/load", {}, 500, "failed to load 'no', failed to poll from model repository"],
    ["no/unload", {}, 200, ""],
    ["..%2Fb/load", {}, 400, "invalid model name '../b', model name must not contain path traversal characters"],
    [
      "b/load",
      { parameters: { config: "{" } },
      400,
      "failed to load 'b', failed to poll from model repository: Invalid config override: ",
    ],
    [
      "b/load",
      { parameters: { config: 1 } },
      400,
      "invalid value type for load parameter 'config', expected string_param.",
    ],
    [
      "b/load",
      { parameters: { "file:x": "*" } },
      400,
      "invalid value type for load parameter 'file:x', expected bytes_param.",
    ],
    ["b/load", { parameters: { x: "y" } }, 400, "unrecognized load parameter 'x'."],
    ["b/load", { parameters: [] }, 400, "Unable to parse 'parameters': "],
    [
      "b/load",
      { parameters: { "file:1/model.onnx": file } },
      400,
      "override model directory requires the parameter 'config'",
    ],
    [
      "b/unload",
      { parameters: { unload_dependents: "yes" } },
      400,
      "invalid value type for 'unload_dependents' parameter, expected bool_param.",
    ],
  ]
  for (const [path, body, status, error] of refusals) {
    const refused = await post(`repository/models/${path}`, body)
    expect(refused.status, path).toBe(status)
    expect(refused.body?.error ?? "", path).toContain(error)
  }
  expect(await response("b")).toBe(9)
})

// A11.completion.default.flag@command
it("loads and unloads over gRPC", async () => {
  const models = await repository()
  models.adding("a", 1, 1)
  const { server, get, rpc, response } = await serve(
    `--model-repository=${models.path}`,
    "--model-control-mode=explicit",
    "--backend-config=onnxruntime,default-max-batch-size=6",
  )
  await using _ = server
  expect(await rpc(repositoryIndex, {})).toMatchObject({
    response: { models: [{ name: "a", version: "", state: "", reason: "" }] },
  })
  expect(await rpc(repositoryModelLoad, { modelName: "a" })).toHaveProperty("response")
  expect(await response("a")).toBe(1)
  expect((await get("models/a/config")).body).toMatchObject({ max_batch_size: 6 })
  const bytes = (value: Uint8Array) => ({
    parameterChoice: { case: "bytesParam" as const, value: new Uint8Array(value) },
  })
  const parameters = { config: text("{}"), "file:2/model.onnx": bytes(plus(5)) }
  expect(await rpc(repositoryModelLoad, { modelName: "a", parameters })).toHaveProperty("response")
  expect(await response("a")).toBe(5)
  expect(await rpc(repositoryIndex, { ready: true })).toMatchObject({
    response: { models: [{ name: "a", version: "2", state: "READY" }] },
  })
  expect(await rpc(repositoryModelLoad, { modelName: "no" })).toEqual({
    code: 13,
    message: "failed to load 'no', failed to poll from model repository",
    tag: "ExecutionFailed",
  })
  expect(await rpc(repositoryModelLoad, { modelName: "a", parameters: { x: text("") } })).toMatchObject({
    code: 3,
    message: "unrecognized load parameter 'x'.",
  })
  const badConfig = { config: text('{"max_batch_size":-1}') }
  expect(await rpc(repositoryModelLoad, { modelName: "a", parameters: badConfig })).toMatchObject({
    code: 3,
    message:
      "failed to load 'a', failed to poll from model repository: 'max_batch_size' must be non-negative value for a",
  })
  const dependents = { unload_dependents: { parameterChoice: { case: "boolParam" as const, value: true } } }
  expect(await rpc(repositoryModelUnload, { modelName: "a", parameters: dependents })).toHaveProperty("response")
  expect(await response("a")).toBe("Request for unknown model: 'a' has no available versions")
  for (const version of ["", "2"]) {
    expect(await rpc(modelReady, { name: "a", version })).toMatchObject({ response: { ready: false } })
  }
  expect(await rpc(modelConfig, { name: "a", version: "2" })).toMatchObject({
    code: 14,
    message: "Request for unknown model: 'a' version 2 is not at ready state",
  })
  expect(await rpc(serverReady, {})).toMatchObject({ response: { ready: true } })
})

// As volumes of Kubernetes, and checkouts that are switched at once, change their files. Only Node itself remembers
// links.
it("a script is what a link leads to when it is loaded, whatever the link has led to before", async () => {
  const models = await repository()
  const [dims, explicit] = ["data_type: TYPE_FP32 dims: [1, 1]", "--model-control-mode=explicit"]
  models.write("m/config.pbtxt", `input { name: "X" ${dims} } output { name: "Y" ${dims} }`)
  for (const name of ["one", "two"]) {
    models.write(`.data/${name}/model.js`, `export default { execute: ([_]) => [new Error("${name}")] }`)
  }
  models.link(".data/one", "m/1")
  const { server, post, response } = await serve(`--model-repository=${models.path}`, explicit, "--load-model=m")
  await using _ = server
  expect(await response("m")).toBe("one")
  models.remove("m/1")
  models.link(".data/two", "m/1")
  expect((await post("repository/models/m/load")).status).toBe(200)
  expect(await response("m")).toBe("two")
})

// A6.poll-secs@command
it(
  "polling follows the directories: models and versions that come, change and go (C34)",
  { timeout: 60_000 },
  async () => {
    const models = await repository()
    models.adding("stays", 1, 1)
    models.adding("changes", 1, 2)
    models.adding("goes", 1, 3)
    const polling = ["--model-control-mode=poll", "--repository-poll-secs=1"]
    const { server, get, post, rpc, response } = await serve(`--model-repository=${models.path}`, ...polling)
    await using _ = server
    const soon = { timeout: 20_000 }
    models.adding("comes", 7, 4)
    await expect.poll(() => response("comes"), soon).toBe(4)
    models.adding("changes", 2, 20)
    await expect.poll(() => response("changes"), soon).toBe(20)
    expect((await get("models/changes")).body).toMatchObject({ versions: ["2"] })
    models.remove("goes")
    await expect.poll(() => response("goes"), soon).toBe("Request for unknown model: 'goes' is not found")
    expect((await post("repository/index")).body).toEqual([
      { name: "changes", version: "1", state: "UNAVAILABLE", reason: "unloaded" },
      { name: "changes", version: "2", state: "READY", reason: "" },
      { name: "comes", version: "7", state: "READY", reason: "" },
      { name: "stays", version: "1", state: "READY", reason: "" },
    ])
    // A failed load keeps the running model, until a valid configuration replaces it.
    models.write("changes/config.pbtxt", "max_batch_size: -3")
    await server.match(/Failed to load model changes: 'max_batch_size' must be non-negative value for changes/)
    expect([await response("changes"), (await get("health/ready")).status]).toEqual([20, 200])
    models.write("changes/config.pbtxt", "max_batch_size: 3")
    await expect.poll(async () => (await get("models/changes/config")).body.max_batch_size, soon).toBe(3)
    const refused = "explicit model load / unload is not allowed if polling is enabled"
    for (const operation of ["load", "unload"]) {
      expect(await post(`repository/models/stays/${operation}`)).toEqual({ status: 503, body: { error: refused } })
    }
    expect(await rpc(repositoryModelLoad, { modelName: "stays" })).toMatchObject({ code: 14, message: refused })
    expect(await rpc(repositoryModelUnload, { modelName: "stays" })).toMatchObject({ code: 14, message: refused })
  },
)

// A6.reload.instances@both, A6.reload.failed@both, A6.load.failure.version@both
it.each(["HTTP", "gRPC"])(
  "over %s, a change of instances alone is made in place, and a failed load keeps what was there",
  async (variant) => {
    const models = await repository()
    models.adding("m", 1, 1, "version_policy { all {} } max_batch_size: 4")
    models.adding("m", 2, 2)
    const { server, get, post, rpc, response } = await serve(
      `--model-repository=${models.path}`,
      "--model-control-mode=explicit",
      "--load-model=*",
    )
    await using _ = server
    /** Undefined where it was loaded. */
    const load = async (config: object) => {
      if (variant === "HTTP") {
        const { body } = await post("repository/models/m/load", { parameters: { config: JSON.stringify(config) } })
        return body?.error
      }
      const loaded = await rpc(repositoryModelLoad, {
        modelName: "m",
        parameters: { config: text(JSON.stringify(config)) },
      })
      return "message" in loaded ? loaded.message : undefined
    }
    const count = async () => {
      if (variant === "HTTP") return (await get("models/m/versions/1/config")).body.instance_group[0].count
      const found = await rpc(modelConfig, { name: "m", version: "1" })
      return "response" in found ? found.response.config?.instanceGroup[0]?.count : found
    }
    const successes = async () => {
      if (variant === "HTTP")
        return (await get("models/m/versions/2/stats")).body.model_stats[0].inference_stats.success.count
      const found = await rpc(modelStatistics, { name: "m", version: "2" })
      return "response" in found ? Number(found.response.modelStats[0]?.inferenceStats?.success?.count) : found
    }
    const config = { version_policy: { all: {} }, max_batch_size: 4 }
    const groups = (...counts: ReadonlyArray<number>) => ({
      ...config,
      instance_group: counts.map((count) => ({ count, kind: "KIND_CPU" })),
    })
    expect([await response("m"), await count(), await successes()]).toEqual([2, 2, 1])
    for (const [index, instances] of [3, 1, 2].entries()) {
      expect(await load(groups(instances))).toBe(undefined)
      expect([await response("m"), await count(), await successes()]).toEqual([2, instances, 2 + index])
    }
    const refusals = [
      [{ ...config, max_batch_size: -1 }, "'max_batch_size' must be non-negative value for m"],
      [
        { ...config, input: [io("X", 7)], output: [io("Y", 1)] },
        "version 1 is at UNAVAILABLE state: Invalid argument: model 'm', tensor 'X'",
      ],
      [
        { ...config, instance_group: [{ kind: "KIND_GPU", gpus: [99] }] },
        "instance group m_0 of model m specifies invalid or unsupported gpu id 99",
      ],
    ] as const
    for (const [given, error] of refusals) expect(await load(given)).toContain(error)
    expect([await response("m"), await response("m", "1"), await count(), await successes()]).toEqual([2, 1, 2, 5])
    expect((await post("repository/index")).body).toMatchObject([{ state: "READY" }, { state: "READY" }])
    // Any other change makes a new model, with new statistics.
    expect(await load({ ...groups(2), max_batch_size: 3 })).toBe(undefined)
    expect(await successes()).toBe(0)
  },
)

it("readiness is of all that is to be there, over both transports", async () => {
  const models = await repository()
  models.adding("good", 1, 1)
  models.write("wrong/1/model.onnx", "")
  const explicit = ["--model-control-mode=explicit", "--load-model=good", "--exit-on-error=false"]
  const { server, get, post, rpc } = await serve(`--model-repository=${models.path}`, ...explicit)
  await using _ = server
  const ready = async () => {
    const overGrpc = await rpc(serverReady, {})
    return [(await get("health/ready")).status, "response" in overGrpc && overGrpc.response.ready]
  }
  expect(await ready()).toEqual([200, true])
  expect((await post("repository/models/wrong/load")).status).toBe(400)
  expect(await ready()).toEqual([400, false])
  expect((await get("health/live")).status).toBe(200)
  expect((await post("repository/models/wrong/unload")).status).toBe(200)
  expect(await ready()).toEqual([200, true])
})

it("a repository without models is served, as is one that is given twice", async () => {
  const models = await repository()
  const same = [`--model-repo=${models.path}`, `--model-store=${models.path}/`, "--model-control-mode=explicit"]
  const { server, get, post, response } = await serve(...same)
  await using _ = server
  expect([(await post("repository/index")).body, (await get("health/ready")).status]).toEqual([[], 200])
  models.adding("later", 1, 5)
  expect(await post("repository/models/later/load")).toEqual({ status: 200, body: undefined })
  expect(await response("later")).toBe(5)
})

// A6.exit-on-error.absent@command
it("exits with 1 if a requested model does not exist", async () => {
  const models = await repository()
  models.adding("good", 1, 1)
  const explicit = ["--model-control-mode=explicit", "--load-model=good", "--load-model=absent"]
  const failed = await nereid("serve", ...anyPort, `--model-repository=${models.path}`, ...explicit).ended
  expect(failed).toMatchObject({
    code: 1,
    output: expect.stringContaining("absent: failed to load 'absent', failed to poll from model repository"),
  })
})
