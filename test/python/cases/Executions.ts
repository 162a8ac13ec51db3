/** Execution in default mode: responses, wrong ones, errors and their codes. */
import { expect } from "vitest"
import { type CaseGroup, dataOf } from "../PythonCase.ts"
import { statusOf } from "../PythonClient.ts"
import { numbers, pairOf, parameter, text, texts } from "../PythonRepository.ts"
import { executionErrorCases } from "./ExecutionErrors.ts"

const floats = pairOf("FP32", "4")
const batchesOf = (size: number) =>
  `max_batch_size: 8 dynamic_batching { preferred_batch_size: ${size} max_queue_delay_microseconds: 60000000 }`

const single = numbers("IN", "FP32", [4], [1, 2, 3, 4])
const oneRow = (name: string, value: string) => ({ name, datatype: "BYTES", shape: [1, 1], data: [value] })

export const executions: CaseGroup = {
  name: "executions of models in Python",
  models: {
    sync: { file: "triton_sync", config: texts },
    async: { file: "triton_text", config: texts },
    gather: { file: "triton_gather", config: `${pairOf("INT32")} ${batchesOf(2)}` },
    concurrent: { file: "triton_meet", config: `${pairOf("INT32")} ${parameter("concurrent_executions", 4)}` },
    in_turn: { file: "triton_meet", config: pairOf("INT32") },
    // Its code may return anything.
    sender: { file: "triton_decoupled", config: texts },
    mixed: {
      file: "model",
      config: `input { name: "TEXT" data_type: TYPE_STRING dims: 1 } output { name: "ANSWER" data_type: TYPE_STRING dims: 1 } ${batchesOf(2)}`,
    },
    raising: { file: "triton_sync", config: `${texts} ${batchesOf(2)}` },
    execute_error: { file: "triton_life", config: `${floats} ${batchesOf(3)}` },
    wrong_model: { file: "triton_life", config: floats },
    codes: { file: "triton_codes", config: texts },
  },
  files: (fixture) => {
    fixture.write("absent/1/model.py", "class TritonPythonModel:\n    pass\n")
    fixture.write("absent/config.pbtxt", `backend: "python" ${floats}`)
  },
  cases: [
    {
      name: "a model without execute fails its requests, and names its file",
      proves: ["P2.execute.missing"],
      run: async ({ client, fixture }) => {
        const { status, error } = await client.infer("absent", [single])
        expect(status).toBe(statusOf(client, "INTERNAL"))
        expect(error).toContain(`Python model ${fixture.path}/absent/1/model.py does not implement \`execute\` method.`)
      },
    },
    {
      name: "a coroutine is waited for, and runs the requests of its batch at the same time",
      proves: ["P2.execute.async", "P2.execute.async-batch"],
      run: async ({ client, run }) => {
        expect(await run("await asyncio.sleep(0)\nreturn 'waited'", "async")).toBe("waited")
        const input = [numbers("IN", "INT32", [1, 1], [0])]
        const answers = await Promise.all([client.infer("gather", input), client.infer("gather", input)])
        expect(answers.map(dataOf)).toEqual([[2], [2]])
      },
    },
    {
      name: "concurrent_executions is how many coroutines one instance executes at the same time; one by default",
      run: async ({ client }) => {
        const eight = (model: string, size: number) =>
          Promise.all(
            Array.from({ length: 8 }, async () =>
              dataOf(await client.infer(model, [numbers("IN", "INT32", [1], [size])], { id: client.transport })),
            ),
          )
        // Four of them wait for each other, and there is never a fifth.
        expect(await eight("concurrent", 4)).toEqual(Array.from({ length: 8 }, () => [4]))
        expect(await eight("in_turn", 1)).toEqual(Array.from({ length: 8 }, () => [1]))
      },
    },
    {
      name: "the sender answers once, in execute or after it",
      proves: ["P2.execute.sender", "P2.execute.sender-late"],
      run: async ({ run }) => {
        expect(await run("sender.send(response(1), FINAL)", "sender")).toBe("1")
        expect(await run("sender.send(response(2))\nsender.send(flags=FINAL)", "sender")).toBe("2")
        const later = "threading.Timer(0.01, lambda: sender.send(response('later'), FINAL)).start()"
        expect(await run(later, "sender")).toBe("later")
      },
    },
    {
      name: "the sender answers some requests of a batch, and a response of the list the others",
      proves: ["P2.execute.sender-some"],
      run: async ({ client }) => {
        const answers = await Promise.all(
          ["late sent", "echo returned"].map((value) => client.infer("mixed", [oneRow("TEXT", value)])),
        )
        expect(answers.map(dataOf)).toEqual([["sent"], ["returned"]])
      },
    },
    {
      name: "a request that nothing answers fails",
      proves: ["P2.execute.nothing"],
      run: async ({ client }) => {
        expect(await client.infer("sender", [text("IN", "pass")])).toEqual({
          status: statusOf(client, "INTERNAL"),
          error: "The model returned no response for the request and has sent none.",
        })
      },
    },
    ...executionErrorCases,
  ],
}
