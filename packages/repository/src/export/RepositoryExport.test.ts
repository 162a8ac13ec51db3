/** Exports models in code to a repository, and loads the same models from it. */
import { altered } from "../../../../test/fixtures/runningModel.ts"
import { expect, it } from "@effect/vitest"
import { join } from "node:path"
import { Context, Duration, Effect, Layer, Result, Stream } from "effect"
import { Tensor } from "@nereid/core"
import * as ConfigurationMessage from "@nereid/core/internal/configuration/ConfigurationMessage"
import type { ExportedLayer, ExportedModel } from "@nereid/core/internal/lifecycle/ExportedModels"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { stream } from "@nereid/core/internal/running/CallableModel"
import type { ModelConfig } from "@nereid/protocol/model_config"
import { repository } from "../../../../test/fixtures/repository.ts"
import { callModel, open } from "../Repository.fixture.ts"
import * as Exported from "../../../../test/fixtures/modules/exported.ts"
import { exportRepository, type RepositoryFile } from "./RepositoryExport.ts"
import * as RepositoryFiles from "./RepositoryFiles.ts"

const fixture = join(import.meta.dirname, "../../../../test/fixtures/modules/exported.ts")

/** Whether it provides what its name says is tried. */
const isLayer = (value: unknown): value is ExportedLayer => Layer.isLayer(value)

/** A model in code, running. */
const built = Effect.fnUntraced(function* (name: keyof typeof Exported & `${string}Live`) {
  const className = name.slice(0, -"Live".length)
  const model: ExportedModel = Reflect.get(Exported, className)
  const layer: unknown = Reflect.get(Exported, name)
  if (!isLayer(layer)) throw new TypeError(name)
  const running = Context.get(yield* Layer.build(layer), model).model
  const module = `export { ${className}, ${name} } from ${JSON.stringify(fixture)}\n`
  return { definition: model.definition, running, module }
})

const text = (files: ReadonlyArray<RepositoryFile>, path: string) => files.find((file) => file.path === path)?.content

/** Exports the models to a repository and loads it. Returns its models and the notes of the export. */
const roundTrip = Effect.fnUntraced(function* (...names: ReadonlyArray<Parameters<typeof built>[0]>) {
  const models = yield* Effect.forEach(names, built)
  const { files, notes } = yield* Effect.fromResult(exportRepository(models))
  const { path } = yield* repository
  yield* RepositoryFiles.write(path, files)
  const opened = yield* open({ path })
  const served = (name: string): RunningModel => Result.getOrThrow(opened.registry.get(name, ""))
  const coded = (name: string): RunningModel => {
    const found = models.find(({ running }) => running.description.name === name)
    if (found === undefined) throw new Error(`no ${name}`)
    return found.running
  }
  return { files, notes, path, served, coded, index: opened.index() }
})

/** Returns the parts of a configuration that do not depend on whether the model is in a file or in code. */
const comparable = (model: RunningModel): Partial<ModelConfig> => {
  const config = ConfigurationMessage.make(model)
  const { name, maxBatchSize, input, output, schedulingChoice, instanceGroup, versionPolicy, responseCache } = config
  return {
    name,
    maxBatchSize,
    input,
    output: output.map((tensor) => ({ ...tensor, labelFilename: "" })),
    schedulingChoice,
    instanceGroup,
    ...(versionPolicy === undefined ? {} : { versionPolicy }),
    ...(responseCache === undefined ? {} : { responseCache }),
  }
}

it.live("serves the metadata, configuration and responses of the model in code", () =>
  Effect.gen(function* () {
    const { files, served, coded, notes } = yield* roundTrip("PlainLive", "ToneLive", "SingleLive")
    expect(notes).toEqual([])
    for (const name of ["plain", "tone", "single"]) {
      const [one, other] = [served(name), coded(name)]
      expect(comparable(one)).toEqual(comparable(other))
      expect(one.description.platform).toBe(other.description.platform)
      expect(one.description.maxBatchSize).toBe(other.description.maxBatchSize)
      expect(one.life.instanceGroups().map(({ count }) => count)).toEqual(
        other.life.instanceGroups().map(({ count }) => count),
      )
    }
    const x = Tensor.make("FP32", [2, 1], Float32Array.of(1, 2))
    expect(yield* callModel(served("plain"), [x])).toEqual(yield* callModel(coded("plain"), [x]))
    const word = Tensor.make("BYTES", [1, 1], [new TextEncoder().encode("abc")])
    for (const level of [undefined, Tensor.make("INT32", [1, 1], Int32Array.of(4))]) {
      expect(yield* callModel(served("tone"), [word, level])).toEqual(yield* callModel(coded("tone"), [word, level]))
    }
    expect(text(files, "single/config.pbtxt")).toMatch(/^max_batch_size: 0\ninput: \{$/m)
    const inputs = [Tensor.make("INT64", [2, 1], BigInt64Array.of(1n, 2n)), Tensor.make("BF16", [1], Uint16Array.of(1))]
    expect(yield* callModel(served("single"), inputs)).toEqual(yield* callModel(coded("single"), inputs))
  }),
)

it.live("a file: load options, warm-up, queue options, and options that a configuration cannot express", () =>
  Effect.gen(function* () {
    const { files, notes, served, coded } = yield* roundTrip("PlusLive")
    expect(text(files, "plus/config.pbtxt")).toBe(`name: "plus"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
max_batch_size: 8
input: {
  name: "X"
  data_type: TYPE_FP32
  dims: 1
}
output: {
  name: "Y"
  data_type: TYPE_FP32
  dims: 1
}
optimization: {
  graph: {
    level: -1
  }
}
dynamic_batching: {
  preferred_batch_size: 2
  preferred_batch_size: 4
  max_queue_delay_microseconds: 2000
  priority_levels: 2
  default_priority_level: 2
  default_queue_policy: {
    timeout_action: DELAY
    default_timeout_microseconds: 3000000
    max_queue_size: 1024
  }
  priority_queue_policy: {
    key: 1
    value: {
      allow_timeout_override: true
      max_queue_size: 5
    }
  }
}
instance_group: {
  kind: KIND_CPU
  count: 1
}
instance_group: {
  kind: KIND_CPU
  count: 2
}
parameters: {
  key: "intra_op_thread_count"
  value: {
    string_value: "2"
  }
}
parameters: {
  key: "execution_mode"
  value: {
    string_value: "1"
  }
}
parameters: {
  key: "inter_op_thread_count"
  value: {
    string_value: "3"
  }
}
parameters: {
  key: "enable_mem_arena"
  value: {
    string_value: "0"
  }
}
model_warmup: {
  name: "sample_0"
  batch_size: 1
  inputs: {
    key: "X"
    value: {
      data_type: TYPE_FP32
      dims: 1
      input_data_file: "sample0_0"
    }
  }
  count: 2
}
model_warmup: {
  name: "sample_1"
  batch_size: 1
  inputs: {
    key: "X"
    value: {
      data_type: TYPE_FP32
      dims: 1
      input_data_file: "sample1_0"
    }
  }
  count: 2
}
model_warmup: {
  name: "1_sample_0"
  batch_size: 2
  inputs: {
    key: "X"
    value: {
      data_type: TYPE_FP32
      dims: 1
      input_data_file: "1_sample0_0"
    }
  }
  count: 1
}
response_cache: {
  enable: true
}
`)
    expect(notes).toEqual([
      "model 'plus': a configuration cannot express padTo",
      "model 'plus': the file requires 'X', which have a default in code",
      `model 'plus': the warm-up of a configuration cannot express onFailure: "ignore"`,
    ])
    expect(text(files, "plus/warmup/sample0_0")).toEqual(new Uint8Array(Float32Array.of(5).buffer))
    expect(text(files, "plus/warmup/sample1_0")).toEqual(new Uint8Array(Float32Array.of(1).buffer))
    expect(text(files, "plus/warmup/1_sample0_0")).toEqual(new Uint8Array(Float32Array.of(6).buffer))
    expect(text(files, "plus/3/model.onnx")).toEqual({ copyOf: coded("plus").description.modelFile?.path })
    expect(served("plus").description.version).toBe("3")
    expect(comparable(served("plus")).schedulingChoice).toEqual(comparable(coded("plus")).schedulingChoice)
    const x = Tensor.make("FP32", [1, 1], Float32Array.of(1))
    expect(yield* callModel(served("plus"), [x])).toEqual(yield* callModel(coded("plus"), [x]))
  }),
)

it.live("a decoupled model streams", () =>
  Effect.gen(function* () {
    const { files, served } = yield* roundTrip("CountLive")
    expect(text(files, "count/config.pbtxt")).toContain("decoupled: true")
    const inputs = [Tensor.make("INT32", [1, 1], Int32Array.of(3))]
    const request = { id: "", inputs, rows: 1, parameters: {}, deadline: undefined }
    const responses = yield* Stream.runCollect(stream(served("count").calls, request))
    expect(Array.from(responses, ({ outputs }) => outputs[0]?.data[0])).toEqual([1, 2, 3])
  }),
)

it.live("writes labels to files, and notes labels that contain line breaks", () =>
  Effect.gen(function* () {
    const { files, served } = yield* roundTrip("ToneLive")
    expect(text(files, "tone/TONE.labels.txt")).toBe("low\nhigh\n")
    expect(served("tone").description.signature.outputs[0]?.labels).toEqual(["low", "high"])
    const { running, definition } = yield* built("ToneLive")
    const odd = running.description.signature.outputs.map((output) => ({ ...output, labels: ["a\nb", "c"] }))
    const exported = exportRepository([
      {
        definition,
        running: altered(running, { description: { signature: { ...running.description.signature, outputs: odd } } }),
      },
    ])
    expect(Result.getOrThrow(exported).notes).toContain(
      "model 'tone': omits the labels of 'TONE', which cannot be written as lines of a file",
    )
  }),
)

it.live("a file whose requests may differ in shape groups them as the model in code does", () =>
  Effect.gen(function* () {
    const { definition, running } = yield* built("PlainLive")
    const { signature } = running.description
    const inputs = signature.inputs.map((spec) => ({ ...spec, dims: ["n"] }))
    const varying = altered(running, { description: { signature: { ...signature, inputs } } })
    const config = (running: RunningModel) =>
      String(text(Result.getOrThrow(exportRepository([{ definition, running }])).files, "plain/config.pbtxt"))
    expect(config(running)).not.toContain("batch_group_order")
    expect(config(varying)).toMatch(/key: "batch_group_order"\s+value: \{\s+string_value: "independent"/)
  }),
)

it.live("a file keeps its latency target", () =>
  Effect.gen(function* () {
    const { definition, running } = yield* built("PlainLive")
    const { batching } = running.description
    const target = altered(running, { description: { batching: { ...batching, latencyTarget: Duration.millis(40) } } })
    const { files } = Result.getOrThrow(exportRepository([{ definition, running: target }]))
    expect(text(files, "plain/config.pbtxt")).toMatch(
      /key: "latency_target_microseconds"\s+value: \{\s+string_value: "40000"/,
    )
  }),
)

it.live("without a module, a model in code is exported as its configuration alone, with a note", () =>
  Effect.gen(function* () {
    const { definition, running } = yield* built("ToneLive")
    const { files, notes } = yield* Effect.fromResult(exportRepository([{ definition, running }]))
    expect(files.map(({ path }) => path)).toEqual(["tone/config.pbtxt", "tone/TONE.labels.txt"])
    expect(notes).toEqual(["model 'tone': only its configuration is exported, because its module is unknown"])
  }),
)

it.live("refuses a model that a configuration cannot express", () =>
  Effect.gen(function* () {
    const scalar = yield* built("ScalarLive")
    expect(Result.merge(exportRepository([scalar]))).toBe(
      "model 'scalar': 'X' is a scalar, but a configuration requires at least one dimension: declare it with [1]",
    )
    const { running } = scalar
    expect(
      Result.merge(exportRepository([{ ...scalar, running: altered(running, { description: { name: ".m" } }) }])),
    ).toMatch(/the name is not a valid directory name/)
    const modelFile = { path: "/m.onnx", parameters: {}, graphLevel: 0, gpuAccelerators: [], unsupportedOptions: [] }
    const outside = exportRepository([
      { ...scalar, running: altered(running, { description: { modelFile } }), companions: ["../weights"] },
    ])
    expect(Result.merge(outside)).toMatch(/weights file \.\.\/weights is outside the directory of the model file/)
  }),
)

it.live("writes over nothing that is other, unless that is wanted, and leaves alone what is the same", () =>
  Effect.gen(function* () {
    const { path, write } = yield* repository
    const files = [
      { path: "m/config.pbtxt", content: "name: 'm'" },
      { path: "m/1/model.onnx", content: { copyOf: fixture } },
    ]
    expect(yield* RepositoryFiles.write(path, files)).toEqual(["m/config.pbtxt", "m/1/model.onnx"])
    expect(yield* RepositoryFiles.write(path, files)).toEqual([])
    write.call({ path }, "m/config.pbtxt", "mine")
    const refused = yield* Effect.flip(RepositoryFiles.write(path, files))
    expect(refused.message).toMatch(
      /with these names and different contents \(--overwrite replaces them\): m\/config\.pbtxt$/,
    )
    expect(yield* RepositoryFiles.write(path, files, true)).toEqual(["m/config.pbtxt"])
  }),
)

it.live("a module whose configuration is another is unavailable, with every difference", () =>
  Effect.gen(function* () {
    const tone = yield* built("ToneLive")
    const { files } = yield* Effect.fromResult(exportRepository([tone]))
    const changed = (from: string, to: string) =>
      Effect.gen(function* () {
        const { path } = yield* repository
        const others = files.map((file) =>
          typeof file.content === "string" ? { ...file, content: file.content.replace(from, to) } : file,
        )
        yield* RepositoryFiles.write(path, others)
        const { index } = yield* open({ path })
        return index()[0]
      })
    expect(yield* changed("dims: -1", "dims: 3")).toMatchObject({
      state: "UNAVAILABLE",
      reason: expect.stringMatching(/model\.ts: output 'all of it': declared BYTES\["n"\], found BYTES\[3\]$/),
    })
    expect(
      yield* changed("instance_group", "model_transaction_policy { decoupled: true } instance_group"),
    ).toMatchObject({
      state: "UNAVAILABLE",
    })
    expect(yield* changed("Tone, ToneLive", "Tone")).toMatchObject({
      reason: expect.stringContaining("must export a script from ModelScript"),
    })
    expect(yield* changed("count: 2", "count: 3")).toMatchObject({ state: "READY" })
  }),
)

it.live("the instances of a module are those of its layer, also after a change of the configuration", () =>
  Effect.gen(function* () {
    const { files } = yield* Effect.fromResult(exportRepository([yield* built("ToneLive")]))
    const fixture = yield* repository
    yield* RepositoryFiles.write(fixture.path, files)
    const { registry, load } = yield* open(fixture, { control: "explicit", load: ["*"] })
    const config = String(text(files, "tone/config.pbtxt"))
    fixture.write("tone/config.pbtxt", config.replace("count: 2", "count: 5"))
    yield* load("tone")
    expect(registry.models[0]?.life.instanceGroups()).toMatchObject([{ count: 2 }])
  }),
)

it.live("a layer that cannot be built is the reason", () =>
  Effect.gen(function* () {
    const tone = yield* built("ToneLive")
    const module = `import { Effect, Layer } from "effect"
export { Tone } from ${JSON.stringify(fixture)}
export const ToneLive = Layer.effectContext(Effect.fail(new Error("out of order")))
`
    const { files } = yield* Effect.fromResult(exportRepository([{ ...tone, module }]))
    const { path } = yield* repository
    yield* RepositoryFiles.write(path, files)
    const { index } = yield* open({ path })
    expect(index()[0]).toMatchObject({
      state: "UNAVAILABLE",
      reason: expect.stringMatching(/model\.ts: out of order$/),
    })
  }),
)
