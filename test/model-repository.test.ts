/** `nereid serve --model-repository` as a user meets it: the start, the index, and control over both transports (C32, C33). */
import type { DescMessage, DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import { clients } from "../packages/server/src/grpc/GrpcServer.fixture.ts"
import { repository as writeRepository, plus } from "./fixtures/repository.ts"
import { nereid } from "./Program.ts"

const anyPort = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]

const { repositoryIndex, repositoryModelLoad, repositoryModelUnload, serverReady } = GRPCInferenceService.method

/** What is there until the test ends. */
const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

const repository = () => scoped(writeRepository)

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
  /** What a model makes of 0. */
  const answer = async (name: string) => {
    const { body } = await post(`models/${name}/infer`, {
      inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }],
    })
    return body.error ?? body.outputs[0].data[0]
  }
  return { server, post, get, rpc, answer }
}

it("serves a repository beside a module, and shows what is there and what is not", async () => {
  const models = await repository()
  models.adding("bare", 3, 7)
  models.adding("wrong", 1, 1, "max_batch_size: 4\nnam: 'wrong'")
  const module = "test/fixtures/modules/kinds.ts"
  const { server, get, post, answer } = await serve(
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
  expect(await answer("bare")).toBe(7)
  expect((await get("health/ready")).status).toBe(400)
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
    { name: "wrong", version: "1", state: "UNAVAILABLE" },
  ])
  // Nobody may load here.
  expect(await post("repository/models/bare/load")).toMatchObject({
    status: 503,
    body: { error: "explicit model load / unload is not allowed if polling is enabled" },
  })
})

it("without strict readiness a server is ready, whatever its models are", async () => {
  const models = await repository()
  models.adding("wrong", 1, 1, "max_batch_size: -4")
  const lenient = ["--exit-on-error=false", "--strict-readiness=false"]
  const { server, get } = await serve(`--model-repository=${models.path}`, ...lenient)
  await using _ = server
  expect((await get("health/ready")).status).toBe(200)
})

it("ends with 1 and the reasons where a model cannot be loaded; and where there is nothing to serve", async () => {
  const models = await repository()
  models.adding("good", 1, 1)
  models.adding("wrong", 1, 1, "max_batch_size: -4")
  const failed = await nereid("serve", ...anyPort, `--model-repository=${models.path}`).ended
  expect(failed.code).toBe(1)
  expect(failed.output).toContain(
    "failed to load all models\n  wrong: 'max_batch_size' must be non-negative value for wrong",
  )
  const empty = await nereid("serve", ...anyPort).ended
  expect(empty).toMatchObject({ code: 1, output: expect.stringContaining("there is nothing to serve") })
  const absent = await nereid("serve", ...anyPort, "--model-repository=/no/such/directory").ended
  expect(absent).toMatchObject({ code: 1, output: expect.stringContaining("cannot read /no/such/directory") })
})

it("loads and unloads over HTTP", async () => {
  const models = await repository()
  models.adding("a", 1, 1)
  models.adding("b", 1, 2)
  const explicit = ["--model-control-mode=explicit", "--load-model=a"]
  const { server, get, post, answer } = await serve(`--model-repository=${models.path}`, ...explicit)
  await using _ = server
  await server.match(/b +- +not loaded/)
  expect((await post("repository/index")).body).toEqual([
    { name: "a", version: "1", state: "READY", reason: "" },
    { name: "b" },
  ])
  expect(await answer("b")).toBe("Request for unknown model: 'b' is not found")
  expect(await post("repository/models/b/load")).toEqual({ status: 200, body: undefined })
  expect([await answer("b"), (await get("models/b/ready")).status]).toEqual([2, 200])
  expect(await post("repository/models/a/unload", { parameters: { unload_dependents: true } })).toMatchObject({
    status: 200,
  })
  expect(await answer("a")).toBe("Request for unknown model: 'a' is not found")
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
  expect(await answer("b")).toBe(9)
  expect((await get("models/b/config")).body).toMatchObject({ max_batch_size: 32 })

  const refusals: ReadonlyArray<readonly [string, object, number, string]> = [
    ["no/load", {}, 500, "failed to load 'no', failed to poll from model repository"],
    ["no/unload", {}, 200, ""],
    ["..%2Fb/load", {}, 400, "invalid model name '../b', model name must not contain path traversal characters"],
    ["b/load", { parameters: { config: "{" } }, 400, "load failed for model 'b': Invalid config override: "],
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
    ["b/load", { parameters: [] }, 500, "Unable to parse 'parameters': "],
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
  expect(await answer("b")).toBe(9)
})

it("loads and unloads over gRPC", async () => {
  const models = await repository()
  models.adding("a", 1, 1)
  const { server, rpc, answer } = await serve(`--model-repository=${models.path}`, "--model-control-mode=explicit")
  await using _ = server
  expect(await rpc(repositoryIndex, {})).toMatchObject({
    response: { models: [{ name: "a", version: "", state: "", reason: "" }] },
  })
  expect(await rpc(repositoryModelLoad, { modelName: "a" })).toHaveProperty("response")
  expect(await answer("a")).toBe(1)
  const text = (value: string) => ({ parameterChoice: { case: "stringParam" as const, value } })
  const bytes = (value: Uint8Array) => ({
    parameterChoice: { case: "bytesParam" as const, value: new Uint8Array(value) },
  })
  const parameters = { config: text("{}"), "file:2/model.onnx": bytes(plus(5)) }
  expect(await rpc(repositoryModelLoad, { modelName: "a", parameters })).toHaveProperty("response")
  expect(await answer("a")).toBe(5)
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
    message: "load failed for model 'a': 'max_batch_size' must be non-negative value for a",
  })
  const dependents = { unload_dependents: { parameterChoice: { case: "boolParam" as const, value: true } } }
  expect(await rpc(repositoryModelUnload, { modelName: "a", parameters: dependents })).toHaveProperty("response")
  expect(await answer("a")).toBe("Request for unknown model: 'a' is not found")
  expect(await rpc(serverReady, {})).toMatchObject({ response: { ready: true } })
})
