/** Tensors of models in Python: datatypes, shapes, absent ones, batches, requested outputs. */
import { expect } from "vitest"
import { type CaseGroup, dataOf } from "../PythonCase.ts"
import { code, numbers, text } from "../PythonRepository.ts"
import { kinds, tensorModels } from "./TensorModels.ts"

export const tensors: CaseGroup = {
  name: "tensors of models in Python",
  models: tensorModels,
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
