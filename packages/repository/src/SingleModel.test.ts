/** A repository that is itself a model, as KServe mounts one, under the name of `singleModel`. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { plus, repository } from "../../../test/fixtures/repository.ts"
import { open } from "./Repository.fixture.ts"

const single = { singleModel: "flowers" } as const

it.live.each([
  ["model.onnx", {}],
  ["resnet.onnx", {}],
  ["1/model.onnx", {}],
  ["model.onnx", { "config.pbtxt": "max_batch_size: 8" }],
  [
    "weights.onnx",
    { "config.pbtxt": 'platform: "onnxruntime_onnx" default_model_filename: "weights.onnx"', "other.onnx": "no model" },
  ],
  ["3/model.onnx", { "config.pbtxt": 'name: "flowers"', "labels.txt": "a" }],
  ["model.onnx", { "other.onnx": "no model", ".cache/2/x": "", "README.md": "A model" }],
] as const)("%s, beside %j", ([file, others]) =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write(file, plus(7))
    for (const [name, content] of Object.entries(others)) fixture.write(name, content)
    const { index, call, isReady } = yield* open(fixture, single)
    const version = file.startsWith("3/") ? "3" : "1"
    expect(index()).toEqual([{ name: "flowers", version, state: "READY", reason: "" }])
    expect(yield* call("flowers")).toBe(7)
    expect(isReady()).toBe(true)
  }),
)

it.live("a repository with directories of models has them under their own names", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.adding("roses", 1, 1)
    fixture.adding("2", 1, 2)
    fixture.write("README.md", "Models")
    const { index, call } = yield* open(fixture, single)
    expect(index().map(({ name }) => name)).toEqual(["2", "roses"])
    expect([yield* call("roses"), yield* call("2")]).toEqual([1, 2])
  }),
)

it.live("without the name, an ONNX file in a repository is no model, as in Triton", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write("model.onnx", plus(1))
    fixture.adding("roses", 1, 1)
    expect((yield* open(fixture)).index().map(({ name }) => name)).toEqual(["roses"])
  }),
)

it.live.each([
  [["a.onnx", "b.onnx"], /has 2 ONNX files, expected one, or model.onnx/],
  [["config.pbtxt"], /unable to find .*model\.onnx/],
] as const)("%j is a model with an error", ([files, reason]) =>
  Effect.gen(function* () {
    const fixture = yield* repository
    for (const file of files) fixture.write(file, file.endsWith(".onnx") ? plus(1) : 'platform: "onnxruntime_onnx"')
    const { index } = yield* open(fixture, single)
    expect(index()).toMatchObject([{ name: "flowers", state: "UNAVAILABLE", reason: expect.stringMatching(reason) }])
    const error = yield* Effect.flip(open(fixture, { ...single, exitOnError: true }))
    expect(error.message).toMatch(reason)
  }),
)

it.live("is loaded again after its file has changed, in poll mode and by a request", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write("model.onnx", plus(1))
    const { call, load } = yield* open(fixture, { ...single, control: "explicit", load: ["flowers"] })
    expect(yield* call("flowers")).toBe(1)
    fixture.write("model.onnx", plus(20_000))
    yield* load("flowers")
    expect(yield* call("flowers")).toBe(20_000)
  }),
)
