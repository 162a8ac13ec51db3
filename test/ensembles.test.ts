/**
 * An ensemble of a repository over both transports: a script, ONNX files and a model in code as its steps. It has the
 * layout of Triton's example. Covers responses, failures, metadata, and the unloading of its models.
 *
 * (C32, C37)
 */
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService, ModelRepositoryParameterSchema } from "@nereid/protocol/grpc_service"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Effect, Exit, Layer, Scope } from "effect"
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { clients } from "../packages/server/src/grpc/GrpcServer.fixture.ts"
import { model, node, value } from "./fixtures/onnx.ts"
import { repository, type RepositoryFixture } from "./fixtures/repository.ts"

const image = ["n", 1, 2, 2] as const

/** Pixels in digits, separated by spaces. */
const script = `export default { execute: (requests) => requests.map(({ inputs: { RAW_IMAGE: { shape, data } } }) => {
  const texts = Array.from(data, (bytes) => new TextDecoder().decode(bytes))
  if (texts.includes("no image")) return new Error("this is no image")
  const pixels = texts.flatMap((text) => text.split(" ").map(Number))
  return { PREPROCESSED_OUTPUT: globalThis.make("FP32", [shape[0], 1, 2, 2], Float32Array.from(pixels)) }
}) }`

const configs = {
  image_preprocess_model: `max_batch_size: 4 dynamic_batching {}
    input { name: "RAW_IMAGE" data_type: TYPE_STRING dims: 1 }
    output { name: "PREPROCESSED_OUTPUT" data_type: TYPE_FP32 dims: [ 1, 2, 2 ] }`,
  ensemble_model: `
name: "ensemble_model"
platform: "ensemble"
max_batch_size: 4
input [ { name: "IMAGE" data_type: TYPE_STRING dims: [ 1 ] } ]
output [
  { name: "CLASSIFICATION" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "classes.txt" },
  { name: "SEGMENTATION" data_type: TYPE_FP32 dims: [ 1, 2, 2 ] }
]
ensemble_scheduling {
  step [
    {
      model_name: "image_preprocess_model"
      model_version: -1
      input_map { key: "RAW_IMAGE" value: "IMAGE" }
      output_map { key: "PREPROCESSED_OUTPUT" value: "preprocessed_image" }
    },
    {
      model_name: "classification_model"
      model_version: -1
      input_map { key: "FORMATTED_IMAGE" value: "preprocessed_image" }
      output_map { key: "CLASSIFICATION_OUTPUT" value: "CLASSIFICATION" }
    },
    {
      model_name: "segmentation_model"
      model_version: -1
      input_map { key: "FORMATTED_IMAGE" value: "preprocessed_image" }
      output_map { key: "SEGMENTATION_OUTPUT" value: "SEGMENTATION" }
    }
  ]
}`,
  counting: `platform: "ensemble"
    input { name: "UP_TO" data_type: TYPE_INT32 dims: 1 } output { name: "NUMBER" data_type: TYPE_INT32 dims: 1 }
    ensemble_scheduling {
      step { model_name: "count" model_version: -1
        input_map { key: "UP_TO" value: "UP_TO" } output_map { key: "NUMBER" value: "n" } }
      step { model_name: "negative" model_version: -1
        input_map { key: "x" value: "n" } output_map { key: "y" value: "NUMBER" } } }`,
  count: `model_transaction_policy { decoupled: true }
    input { name: "UP_TO" data_type: TYPE_INT32 dims: 1 } output { name: "NUMBER" data_type: TYPE_INT32 dims: 1 }`,
}

const write = (fixture: RepositoryFixture) => {
  for (const [name, config] of Object.entries(configs)) fixture.write(`${name}/config.pbtxt`, config)
  fixture.write("ensemble_model/1/.gitkeep", "")
  fixture.write("ensemble_model/classes.txt", "cat\ndog\nbird\nfish\n")
  fixture.write("image_preprocess_model/1/model.js", script)
  fixture.write(
    "classification_model/1/model.onnx",
    model({
      inputs: [value("FORMATTED_IMAGE", "FP32", image)],
      outputs: [value("CLASSIFICATION_OUTPUT", "FP32", ["n", 4])],
      nodes: [node("Flatten", ["FORMATTED_IMAGE"], ["CLASSIFICATION_OUTPUT"])],
    }),
  )
  fixture.write(
    "segmentation_model/1/model.onnx",
    model({
      inputs: [value("FORMATTED_IMAGE", "FP32", image)],
      outputs: [value("SEGMENTATION_OUTPUT", "FP32", image)],
      nodes: [node("Neg", ["FORMATTED_IMAGE"], ["SEGMENTATION_OUTPUT"])],
    }),
  )
  fixture.write("counting/1/.gitkeep", "")
  fixture.write(
    "count/1/model.js",
    `export default { execute: function* ({ inputs: { UP_TO } }) {
      for (let i = 1; i <= UP_TO.data[0]; i++) {
        if (i === 100) throw new Error("it is enough")
        yield { NUMBER: globalThis.make("INT32", [1], Int32Array.of(i)) }
      }
    } }`,
  )
}

class Negative extends Model.Service<Negative>()("negative", {
  inputs: { x: Tensor.INT32(1) },
  outputs: { y: Tensor.INT32(1) },
}) {}

/** The contracts of what is in the repository. */
class Preprocess extends Model.Service<Preprocess>()("image_preprocess_model", {
  inputs: { RAW_IMAGE: Tensor.utf8() },
  outputs: { PREPROCESSED_OUTPUT: Tensor.FP32(1, 2, 2) },
  maxBatchSize: 4,
}) {}
class Classification extends Model.Service<Classification>()("classification_model", {
  inputs: { FORMATTED_IMAGE: Tensor.FP32(1, 2, 2) },
  outputs: { CLASSIFICATION_OUTPUT: Tensor.FP32(4) },
  maxBatchSize: 4,
}) {}
class Segmentation extends Model.Service<Segmentation>()("segmentation_model", {
  inputs: { FORMATTED_IMAGE: Tensor.FP32(1, 2, 2) },
  outputs: { SEGMENTATION_OUTPUT: Tensor.FP32(1, 2, 2) },
  maxBatchSize: 4,
}) {}
class Whole extends Model.Service<Whole>()("ensemble_model", {
  inputs: { IMAGE: Tensor.utf8() },
  outputs: { CLASSIFICATION: Tensor.FP32(4), SEGMENTATION: Tensor.FP32(1, 2, 2) },
  maxBatchSize: 4,
}) {}
class Counting extends Model.Service<Counting>()("counting", {
  inputs: { UP_TO: Tensor.scalar("INT32") },
  outputs: { NUMBER: Tensor.scalar("INT32") },
}) {}

const anywhere = { host: "127.0.0.1", port: 0 } as const
const scope = Scope.makeUnsafe()
const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Scope.provide(effect, scope))

const start = async (
  more: {
    readonly trace?: { readonly file: string; readonly levels: readonly ["TIMESTAMPS"]; readonly rate: number }
  } = {},
) => {
  Reflect.set(globalThis, "make", Tensor.make)
  const fixture = await scoped(repository)
  write(fixture)
  const models = Repository.layer({
    directories: [fixture.path],
    control: "explicit",
    load: ["ensemble_model", "counting"],
  })
  const NegativeLive = Model.each(Negative, ({ x }) => ({ y: Tensor.map(x, (value) => -value) }))
  return Server.start([Negative], Layer.mergeAll(NegativeLive, models), {
    http: anywhere,
    grpc: anywhere,
    metrics: false,
    ...more,
  })
}

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(async () => {
  await server.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

const urls = {
  gRPC: () => `grpc://127.0.0.1:${server.grpc.port}`,
  HTTP: () => `http://127.0.0.1:${server.http.port}`,
}

const post = async (path: string, body: unknown = {}) => {
  const response = await fetch(`${urls.HTTP()}/v2/${path}`, { method: "POST", body: JSON.stringify(body) })
  const text = await response.text()
  return { status: response.status, text, body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text }
}
const get = async (path: string) => JSON.parse(await (await fetch(`${urls.HTTP()}/v2${path}`)).text())

const rpc = async <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Effect.runPromise((await scoped(clients["grpc-js"]({ port: server.grpc.port })))(method, request))

const pending = async (IMAGE: string, outputs?: ReadonlyArray<unknown>) =>
  post("models/ensemble_model/infer", {
    id: "7",
    inputs: [{ name: "IMAGE", datatype: "BYTES", shape: [1, 1], data: [IMAGE] }],
    ...(outputs === undefined ? {} : { outputs }),
  })

describe.each(["gRPC", "HTTP"] as const)("over %s", (transport) => {
  it("answers as a chain of typed calls does", async () => {
    const url = urls[transport]()
    await using preprocess = await Client.connect(Preprocess, { url })
    await using classification = await Client.connect(Classification, { url })
    await using segmentation = await Client.connect(Segmentation, { url })
    await using whole = await Client.connect(Whole, { url })
    for (const IMAGE of ["1 2 3 4", "-7 0 0.5 9"]) {
      const { PREPROCESSED_OUTPUT: FORMATTED_IMAGE } = await preprocess.infer({ RAW_IMAGE: IMAGE })
      const { CLASSIFICATION_OUTPUT } = await classification.infer({ FORMATTED_IMAGE })
      const { SEGMENTATION_OUTPUT } = await segmentation.infer({ FORMATTED_IMAGE })
      const { CLASSIFICATION, SEGMENTATION } = await whole.infer({ IMAGE })
      expect(CLASSIFICATION.data).toEqual(CLASSIFICATION_OUTPUT.data)
      expect([SEGMENTATION.shape, SEGMENTATION.data]).toEqual([SEGMENTATION_OUTPUT.shape, SEGMENTATION_OUTPUT.data])
    }
  })

  it("fails with the failure of its step", async () => {
    await using whole = await Client.connect(Whole, { url: urls[transport]() })
    await expect(whole.infer({ IMAGE: "no image" })).rejects.toMatchObject({
      _tag: "ExecutionFailed",
      message: expect.stringMatching(/^in ensemble 'ensemble_model', .*this is no image$/),
    })
  })

  it("streams what a decoupled step gives, through the steps behind it, in its order", async () => {
    await using counting = await Client.connect(Counting, { url: urls[transport]() })
    const numbers: Array<number> = []
    for await (const { NUMBER } of counting.stream({ UP_TO: 50 })) numbers.push(NUMBER)
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, i) => -1 - i))
    const seen: Array<number> = []
    const failing = (async () => {
      for await (const { NUMBER } of counting.stream({ UP_TO: 1000 })) seen.push(NUMBER)
    })()
    await expect(failing).rejects.toThrow(/in ensemble 'counting', .*it is enough/)
    expect(seen.length).toBe(99)
  })
})

it("has labels, and runs only the steps of the requested outputs", async () => {
  const before = await get("/models/segmentation_model/stats")
  const { body } = await pending("1 9 2 3", [{ name: "CLASSIFICATION", parameters: { classification: 1 } }])
  expect(body).toMatchObject({ id: "7", outputs: [{ name: "CLASSIFICATION", data: ["9.000000:1:dog"] }] })
  expect(await get("/models/segmentation_model/stats")).toEqual(before)
})

it("is shown as what it is", async () => {
  expect(await get("/models/ensemble_model")).toEqual({
    name: "ensemble_model",
    versions: ["1"],
    platform: "ensemble",
    inputs: [{ name: "IMAGE", datatype: "BYTES", shape: [-1, 1] }],
    outputs: [
      { name: "CLASSIFICATION", datatype: "FP32", shape: [-1, 4] },
      { name: "SEGMENTATION", datatype: "FP32", shape: [-1, 1, 2, 2] },
    ],
    contract: { outputs: [{ name: "CLASSIFICATION", labels: ["cat", "dog", "bird", "fish"] }] },
  })
  const config = await get("/models/ensemble_model/config")
  expect(config).toMatchObject({
    name: "ensemble_model",
    platform: "ensemble",
    backend: "",
    version_policy: { latest: { num_versions: 1 } },
    max_batch_size: 4,
    instance_group: [],
    ensemble_scheduling: {
      step: [
        {
          model_name: "image_preprocess_model",
          model_version: -1,
          input_map: { RAW_IMAGE: "IMAGE" },
          output_map: { PREPROCESSED_OUTPUT: "preprocessed_image" },
          model_namespace: "",
        },
        { model_name: "classification_model" },
        { model_name: "segmentation_model" },
      ],
      max_inflight_requests: 0,
    },
  })
  expect(Object.keys(config)).not.toContain("optimization")
  expect((await get("/models/counting/config")).model_transaction_policy).toEqual({ decoupled: true })
  expect((await get("")).extensions).toContain("model_repository(unload_dependents)")
})

it("counts its requests, and its models theirs", async () => {
  const of = async (name: string) => (await get(`/models/${name}/stats`)).model_stats[0]
  const names = ["ensemble_model", "image_preprocess_model", "classification_model"]
  const before = await Promise.all(names.map(of))
  await pending("1 2 3 4")
  const after = await Promise.all(names.map(of))
  for (const [index, { inference_count, execution_count, inference_stats }] of after.entries()) {
    expect(inference_count).toBe(before[index].inference_count + 1)
    expect(execution_count).toBe(before[index].execution_count + 1)
    expect(inference_stats.success.count).toBe(before[index].inference_stats.success.count + 1)
    expect(inference_stats.compute_infer.ns).toBeGreaterThan(before[index].inference_stats.compute_infer.ns)
  }
})

it("a decoupled one is for streams alone", async () => {
  const { status, body } = await post("models/counting/infer", {
    inputs: [{ name: "UP_TO", datatype: "INT32", shape: [1], data: [3] }],
  })
  expect([status, body]).toEqual([501, { error: expect.stringContaining("decoupled transaction policy") }])
  const { text } = await post("models/counting/generate_stream", { UP_TO: 3 })
  expect(text.match(/"NUMBER":-\d+/g)).toEqual(['"NUMBER":-1', '"NUMBER":-2', '"NUMBER":-3'])
})

it("is unloaded and loaded with its models, and unloads them on request", async () => {
  const index = async () => {
    const { body } = await post("repository/index", { ready: true })
    return body.map(({ name }: { name: string }) => name)
  }
  const counting = ["negative", "count", "counting"]
  const own = ["classification_model", "ensemble_model", "image_preprocess_model", "segmentation_model"]
  const all = ["negative", "classification_model", "count", "counting", ...own.slice(1)]
  expect(await index()).toEqual(all)

  await post("repository/models/segmentation_model/unload")
  expect(await index()).toEqual(["negative", "classification_model", "count", "counting", "image_preprocess_model"])
  const gone = await pending("1 2 3 4")
  expect([gone.status, gone.body.error]).toEqual([
    404,
    "Request for unknown model: 'ensemble_model' has no available versions",
  ])
  expect((await post("repository/models/segmentation_model/load")).status).toBe(200)
  expect(await index()).toEqual(all)
  expect((await pending("1 2 3 4")).status).toBe(200)

  // This model was requested by name and stays; the others do not.
  const unload_dependents = { parameters: { unload_dependents: true } }
  expect((await post("repository/models/ensemble_model/unload", unload_dependents)).status).toBe(200)
  expect(await index()).toEqual(["negative", "count", "counting", "segmentation_model"])
  await rpc(GRPCInferenceService.method.repositoryModelUnload, { modelName: "segmentation_model" })

  await rpc(GRPCInferenceService.method.repositoryModelLoad, { modelName: "ensemble_model" })
  expect(await index()).toEqual(all)
  const dependents = create(ModelRepositoryParameterSchema, { parameterChoice: { case: "boolParam", value: true } })
  await rpc(GRPCInferenceService.method.repositoryModelUnload, {
    modelName: "ensemble_model",
    parameters: { unload_dependents: dependents },
  })
  expect(await index()).toEqual(counting)
})

it("is traced with the requests of its steps", async () => {
  const fixture = await scoped(repository)
  const file = `${fixture.path}/trace.json`
  await using traced = await start({ trace: { file, levels: ["TIMESTAMPS"], rate: 1 } })
  await using whole = await Client.connect(Whole, { url: `grpc://127.0.0.1:${traced.grpc.port}` })
  await whole.infer({ IMAGE: "1 2 3 4" })
  await traced.stop()
  const elements: ReadonlyArray<Record<string, unknown>> = JSON.parse(readFileSync(file, "utf8"))
  const heads = elements.filter(({ model_name }) => model_name !== undefined)
  expect(heads).toEqual([
    { id: 1, model_name: "ensemble_model", model_version: 1 },
    { id: 2, model_name: "image_preprocess_model", model_version: 1, parent_id: 1 },
    { id: 3, model_name: "classification_model", model_version: 1, parent_id: 1 },
    { id: 4, model_name: "segmentation_model", model_version: 1, parent_id: 1 },
  ])
  expect(JSON.stringify(elements.find(({ id, timestamps }) => id === 3 && timestamps !== undefined))).toMatch(
    /REQUEST_START.*QUEUE_START.*COMPUTE_START.*COMPUTE_INPUT_END.*COMPUTE_OUTPUT_START.*COMPUTE_END.*REQUEST_END/,
  )
})
