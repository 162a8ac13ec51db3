/** Tensors of models in Python in repositories: datatypes, shapes, absent ones, batches, requested outputs. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { code, numbers, serve, text, write } from "./PythonRepository.ts"

const pair = (kind: string, dims: string) =>
  [0, 1]
    .map((index) =>
      ["input", "output"]
        .map((side) => `${side} { name: "${side.toUpperCase()}${index}" data_type: ${kind} dims: ${dims} }`)
        .join("\n"),
    )
    .join("\n")

const identity = (kind: string, dims: string, more = "") => ({
  file: "triton_identity",
  config: `input { name: "INPUT0" data_type: ${kind} dims: ${dims} } output { name: "OUTPUT0" data_type: ${kind} dims: ${dims} } ${more}`,
})

describe.skipIf(python === undefined)("tensors of models in Python", () => {
  it("every datatype arrives and returns", async () => {
    const kinds = {
      BOOL: [true, false],
      UINT8: [0, 255],
      INT16: [-1, 300],
      INT32: [-5, 5],
      INT64: [-1, 7],
      UINT64: [1, 2],
      FP32: [1.5, -2],
      FP64: [0.1, 1e300],
    }
    const fixture = await write({
      ...Object.fromEntries(Object.keys(kinds).map((kind) => [kind.toLowerCase(), identity(`TYPE_${kind}`, "-1")])),
      fp16: identity("TYPE_FP16", "-1"),
      strings: identity("TYPE_STRING", "-1"),
      bf16: {
        file: "triton_bf16",
        config:
          'input { name: "INPUT0" data_type: TYPE_BF16 dims: 2 } output { name: "OUTPUT0" data_type: TYPE_BF16 dims: 2 }',
      },
    })
    const { infer, rpc } = await serve(fixture)
    for (const [kind, data] of Object.entries(kinds)) {
      const answer = await infer(kind.toLowerCase(), [numbers("INPUT0", kind, [2], data)])
      expect(answer.outputs).toEqual([{ name: "OUTPUT0", datatype: kind, shape: [2], data }])
    }
    const strings = ["", "naïve 🌊", "123456"]
    expect((await infer("strings", [text("INPUT0", ...strings)])).outputs?.[0]?.data).toEqual(strings)
    // JSON has neither of them.
    for (const datatype of ["FP16", "BF16"]) {
      const inputs = [{ name: "INPUT0", datatype, shape: [2n] }]
      const bytes = Uint8Array.of(0x80, 0x3f, 0x00, 0xc0)
      const modelName = datatype.toLowerCase()
      const { rawOutputContents } = await rpc.modelInfer({ modelName, inputs, rawInputContents: [bytes] })
      expect([...(rawOutputContents[0] ?? [])]).toEqual([...bytes])
    }
  })

  it("four requests at once are one execution of eight rows", async () => {
    const batching =
      "max_batch_size: 64 dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 12000000 }"
    const { infer, statistics } = await serve(await write({ identity_uint8: identity("TYPE_UINT8", "2", batching) }))
    const inputs = [1, 2, 3, 4].map((value) => [numbers("INPUT0", "UINT8", [2, 2], [value, value, 0, 255])])
    const answers = await Promise.all(inputs.map((input) => infer("identity_uint8", input)))
    expect(answers.map(({ outputs }) => outputs?.[0]?.data)).toEqual(inputs.map(([input]) => input?.data))
    expect(await statistics("identity_uint8")).toMatchObject({ execution_count: 1, inference_count: 8 })
  })

  it("an absent optional input is nothing", async () => {
    const config = [0, 1]
      .map((index) => `input { name: "INPUT${index}" data_type: TYPE_INT32 dims: 1 optional: true }`)
      .join("\n")
    const fixture = await write({
      optional: {
        file: "triton_optional",
        config: `max_batch_size: 0 ${config} output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 1 }`,
      },
    })
    const { infer } = await serve(fixture)
    const sums = await Promise.all(
      [["INPUT0"], ["INPUT1"], ["INPUT0", "INPUT1"], []].map((names) =>
        infer(
          "optional",
          names.map((name) => numbers(name, "INT32", [1], [10])),
        ),
      ),
    )
    expect(sums.map(({ outputs }) => outputs?.[0]?.data)).toEqual([[15], [15], [20], [10]])
  })

  it("outputs need not be contiguous, and an input may be written to", async () => {
    const out = (name: string, dims: string) => `output { name: "${name}" data_type: TYPE_INT32 dims: ${dims} }`
    const config = `input { name: "IN" data_type: TYPE_INT32 dims: [2, 4] }
      ${out("TRANSPOSED", "[4, 2]")} ${out("EVERY_SECOND", "[2, 2]")} ${out("RESHAPED", "[8]")}`
    const { infer } = await serve(await write({ views: { file: "triton_views", config } }))
    const { outputs } = await infer("views", [numbers("IN", "INT32", [2, 4], [0, 2, 3, 4, 5, 6, 7, 8])])
    expect(outputs?.map(({ shape, data }) => [shape, data])).toEqual([
      [
        [4, 2],
        [1, 5, 2, 6, 3, 7, 4, 8],
      ],
      [
        [2, 2],
        [1, 3, 5, 7],
      ],
      [[8], [1, 2, 3, 4, 5, 6, 7, 8]],
    ])
  })

  it("only requested outputs are answered, and reshapes are those of the model", async () => {
    const shaped = (side: string) =>
      `${side} { name: "${side.toUpperCase()}0" data_type: TYPE_INT32 dims: 4 reshape { shape: [2, 2] } }`
    const fixture = await write({
      both: { file: "triton_identity", config: pair("TYPE_INT32", "1") },
      shaped: { file: "triton_identity", config: `max_batch_size: 2 ${shaped("input")} ${shaped("output")}` },
    })
    const { infer } = await serve(fixture)
    const inputs = [numbers("INPUT0", "INT32", [1], [1]), numbers("INPUT1", "INT32", [1], [2])]
    expect((await infer("both", inputs, { outputs: [{ name: "OUTPUT1" }] })).outputs).toMatchObject([
      { name: "OUTPUT1", data: [2] },
    ])
    expect((await infer("both", inputs)).outputs).toHaveLength(2)
    const whole = await infer("shaped", [numbers("INPUT0", "INT32", [1, 4], [1, 2, 3, 4])])
    expect(whole.outputs).toMatchObject([{ shape: [1, 4], data: [1, 2, 3, 4] }])
  })

  it("a model may import files beside it", async () => {
    const config = 'output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
    const fixture = await write({ multi_file: { file: "triton_imports", config } })
    fixture.write("multi_file/1/file1.py", code("file1"))
    const { infer, index } = await serve(fixture)
    expect(await index()).toMatchObject([{ state: "READY" }])
    expect((await infer("multi_file", [])).outputs).toMatchObject([{ data: [42] }])
  })

  it("a repeated request is answered from the response cache", async () => {
    const fixture = await write({ cached: identity("TYPE_INT32", "1", "response_cache { enable: true }") })
    const { infer, statistics } = await serve(fixture)
    const input = [numbers("INPUT0", "INT32", [1], [3])]
    for (let count = 0; count < 3; count++) expect((await infer("cached", input)).outputs?.[0]?.data).toEqual([3])
    expect(await statistics("cached")).toMatchObject({ execution_count: 1, inference_count: 3 })
  })

  it("warm-ups run in each instance before the model takes requests", async () => {
    const warmUp = `instance_group { count: 2 } model_warmup { name: "w" count: 2
      inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }`
    const fixture = await write({ warm: identity("TYPE_INT32", "1", warmUp) })
    const { infer, isReady } = await serve(fixture)
    expect(await isReady("warm")).toBe(true)
    expect((await infer("warm", [numbers("INPUT0", "INT32", [1], [3])])).outputs?.[0]?.data).toEqual([3])
  })
})
