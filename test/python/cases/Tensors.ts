/** Tensors of models in Python: datatypes, shapes, absent ones, batches, requested outputs. */
import { expect } from "vitest"
import { type CaseGroup, dataOf } from "../PythonCase.ts"
import { code, numbers, text } from "../PythonRepository.ts"

const tensor = (side: "input" | "output", name: string, kind: string, more: string) =>
  `${side} { name: "${name}" data_type: TYPE_${kind} ${more} }`

/** A model that answers its inputs. */
const identity = (kind: string, dims: string, more = "") => ({
  file: "triton_identity",
  config: `${tensor("input", "INPUT0", kind, `dims: ${dims}`)} ${tensor("output", "OUTPUT0", kind, `dims: ${dims}`)} ${more}`,
})

/** Two elements of each datatype; those of FP16 are their bits. */
const kinds: ReadonlyArray<readonly [datatype: string, data: ReadonlyArray<boolean | number | string>]> = [
  ["BOOL", [true, false]],
  ["UINT8", [0, 255]],
  ["UINT16", [0, 65_535]],
  ["UINT32", [1, 4_294_967_295]],
  ["UINT64", [1, 2]],
  ["INT8", [-128, 127]],
  ["INT16", [-1, 300]],
  ["INT32", [-5, 5]],
  ["INT64", [-1, 7]],
  ["FP16", [0x3c00, 0xc000]],
  ["FP32", [1.5, -2]],
  ["FP64", [0.1, 1e300]],
  ["BYTES", ["naïve 🌊", ""]],
]

const everyKind = kinds
  .map(([datatype]) => (datatype === "BYTES" ? "STRING" : datatype))
  .map(
    (kind, index) =>
      `${tensor("input", `INPUT${index}`, kind, "dims: -1 optional: true")} ${tensor("output", `OUTPUT${index}`, kind, "dims: -1")}`,
  )
  .join("\n")

const optional = [0, 1].map((index) => tensor("input", `INPUT${index}`, "INT32", "dims: 1 optional: true")).join("\n")

const shaped = (side: "input" | "output") =>
  tensor(side, `${side.toUpperCase()}0`, "INT32", "dims: 4 reshape { shape: [2, 2] }")

const views = `${tensor("input", "IN", "INT32", "dims: [2, 4]")} ${tensor("output", "TRANSPOSED", "INT32", "dims: [4, 2]")}
  ${tensor("output", "EVERY_SECOND", "INT32", "dims: [2, 2]")} ${tensor("output", "RESHAPED", "INT32", "dims: [8]")}`

const batching =
  "max_batch_size: 64 dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 12000000 }"

const warmUp = `instance_group { count: 2 } model_warmup { name: "w" count: 2
  inputs { key: "INPUT0" value { data_type: TYPE_INT32 dims: 1 zero_data: true } } }`

export const tensors: CaseGroup = {
  name: "tensors of models in Python",
  models: {
    every: { file: "triton_identity", config: everyKind },
    bf16: { ...identity("BF16", "2"), file: "triton_bf16" },
    batched: identity("UINT8", "2", batching),
    optional: {
      file: "triton_optional",
      config: `max_batch_size: 0 ${optional} ${tensor("output", "OUTPUT0", "INT32", "dims: 1")}`,
    },
    views: { file: "triton_views", config: views },
    shaped: { file: "triton_identity", config: `max_batch_size: 2 ${shaped("input")} ${shaped("output")}` },
    multi_file: { file: "triton_imports", config: tensor("output", "OUT", "INT32", "dims: 1") },
    cached: identity("INT32", "1", "response_cache { enable: true }"),
    warm: identity("INT32", "1", warmUp),
  },
  files: (fixture) => fixture.write("multi_file/1/file1.py", code("file1")),
  cases: [
    {
      name: "every datatype arrives and returns",
      proves: ["P3.types.wire"],
      run: async ({ client }) => {
        for (const [index, [datatype, data]] of kinds.entries()) {
          const answer = await client.infer("every", [{ name: `INPUT${index}`, datatype, shape: [2], data }])
          expect(answer.outputs, datatype).toEqual([{ name: `OUTPUT${index}`, datatype, shape: [2], data }])
        }
      },
    },
    {
      name: "BF16 goes through DLPack, because numpy has no such type",
      proves: ["P3.tensor.bf16"],
      run: async ({ client }) => {
        const data = [0x3f80, 0xc000]
        const answer = await client.infer("bf16", [{ name: "INPUT0", datatype: "BF16", shape: [2], data }])
        expect(answer.outputs).toEqual([{ name: "OUTPUT0", datatype: "BF16", shape: [2], data }])
      },
    },
    {
      name: "tensors without elements arrive and return",
      proves: ["P3.tensor.empty"],
      run: async ({ client }) => {
        const answer = await client.infer("every", [numbers("INPUT10", "FP32", [0], []), text("INPUT12")])
        expect(answer.outputs?.map(({ name, shape, data }) => [name, shape, data])).toEqual([
          ["OUTPUT10", [0], []],
          ["OUTPUT12", [0], []],
        ])
      },
    },
    {
      name: "four requests at once are one execution of eight rows, and each keeps its rows",
      proves: ["P2.execute.list", "P2.execute.order"],
      run: async ({ client, statistics }) => {
        const before = await statistics("batched")
        const inputs = [1, 2, 3, 4].map((value) => numbers("INPUT0", "UINT8", [2, 2], [value, value, 0, 255]))
        const answers = await Promise.all(inputs.map((input) => client.infer("batched", [input])))
        expect(answers.map(dataOf)).toEqual(inputs.map(({ data }) => data))
        const after = await statistics("batched")
        expect(after.execution_count - (before.execution_count ?? 0)).toBe(1)
        expect(after.inference_count - (before.inference_count ?? 0)).toBe(8)
      },
    },
    {
      name: "an absent optional input is None",
      proves: ["P3.function.input"],
      run: async ({ client }) => {
        const sums = await Promise.all(
          [["INPUT0"], ["INPUT1"], ["INPUT0", "INPUT1"], []].map((names) =>
            client.infer(
              "optional",
              names.map((name) => numbers(name, "INT32", [1], [10])),
            ),
          ),
        )
        expect(sums.map(dataOf)).toEqual([[15], [15], [20], [10]])
      },
    },
    {
      name: "outputs need not be contiguous, and an input may be written to",
      proves: ["P2.execute.writable", "P3.tensor.contiguous"],
      run: async ({ client }) => {
        const { outputs } = await client.infer("views", [numbers("IN", "INT32", [2, 4], [0, 2, 3, 4, 5, 6, 7, 8])])
        expect(outputs?.map(({ shape, data }) => [shape, data])).toEqual([
          // Its transposition is by rows again.
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
      },
    },
    {
      name: "outputs that are not requested are dropped, and without a request for any all are answered",
      proves: ["P2.execute.requested", "P2.execute.all-outputs"],
      run: async ({ client }) => {
        const inputs = [numbers("INPUT1", "UINT8", [1], [1]), numbers("INPUT7", "INT32", [1], [2])]
        const some = await client.infer("every", inputs, { outputs: ["OUTPUT7"] })
        expect(some.outputs).toMatchObject([{ name: "OUTPUT7", data: [2] }])
        expect((await client.infer("every", inputs)).outputs).toMatchObject([{ data: [1] }, { data: [2] }])
      },
    },
    {
      name: "reshapes are those of the model",
      proves: ["P2.execute.reshape"],
      run: async ({ client }) => {
        const { outputs } = await client.infer("shaped", [numbers("INPUT0", "INT32", [1, 4], [1, 2, 3, 4])])
        expect(outputs).toMatchObject([{ shape: [1, 4], data: [1, 2, 3, 4] }])
      },
    },
    {
      name: "a model imports files beside it, absolutely and relatively",
      proves: ["P1.import.absolute", "P1.import.relative"],
      run: async ({ client }) => expect(dataOf(await client.infer("multi_file", []))).toEqual([42]),
    },
    {
      name: "a repeated request is answered from the response cache",
      run: async ({ client, statistics }) => {
        const input = [numbers("INPUT0", "INT32", [1], [client.transport === "HTTP" ? 3 : 4])]
        const executions = async () => (await statistics("cached")).execution_count ?? 0
        const before = await executions()
        for (let count = 0; count < 3; count++)
          expect(dataOf(await client.infer("cached", input))).toEqual(input[0]?.data)
        expect((await executions()) - before).toBe(1)
      },
    },
    {
      name: "warm-ups have run in each instance before the model takes requests",
      run: async ({ client }) => {
        expect(await client.isReady("warm")).toBe(true)
        expect(dataOf(await client.infer("warm", [numbers("INPUT0", "INT32", [1], [3])]))).toEqual([3])
      },
    },
  ],
}
