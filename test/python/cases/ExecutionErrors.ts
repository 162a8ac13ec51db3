/** Executions that fail: exceptions, wrong results, errors of responses. */
import { expect } from "vitest"
import type { CaseServer, PythonCase } from "../PythonCase.ts"
import { codes, statusOf } from "../PythonClient.ts"
import { numbers, text } from "../PythonRepository.ts"

const row = numbers("IN", "FP32", [1, 4], [1, 2, 3, 4])
const single = numbers("IN", "FP32", [4], [1, 2, 3, 4])
const oneRow = (name: string, value: string) => ({ name, datatype: "BYTES", shape: [1, 1], data: [value] })

/** Error of the model `sender`, whose execute returns this. */
const returning = ({ run }: CaseServer, value: string) => run(`return ${value}`, "sender")

const failures = async ({ metrics }: CaseServer): Promise<number> => {
  const pattern = /nv_inference_request_failure\{model="wrong_model",reason="BACKEND",version="1"\} (\d+)/
  return Number(pattern.exec(await metrics())?.[1] ?? 0)
}

export const executionErrorCases: ReadonlyArray<PythonCase> = [
  {
    name: "wrong results of execute are errors that say what came",
    proves: ["P2.return.list", "P2.return.count", "P2.return.kind"],
    run: async (server) => {
      expect(await returning(server, "'nothing'")).toContain(
        "Expected a list in the execute return, found type '<class 'str'>'.",
      )
      expect(await returning(server, "[]")).toContain(
        "Number of InferenceResponse objects do not match the number of InferenceRequest objects. " +
          "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n",
      )
      expect(await returning(server, "[1]")).toContain(
        "Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'int'>'.",
      )
    },
  },
  {
    name: "an exception fails all requests of the batch, with its text and its frames",
    proves: ["P2.raise.batch", "P2.raise.text", "P2.raise.frames", "P2.raise.metric"],
    run: async (server) => {
      const { client } = server
      const two = ["raise ValueError('bad')", "return 1"].map((code) => client.infer("raising", [oneRow("IN", code)]))
      for (const { status, error } of await Promise.all(two)) {
        expect(status).toBe(statusOf(client, "INTERNAL"))
        expect(error).toContain("ValueError: bad")
      }
      const before = await failures(server)
      const { error } = await client.infer("wrong_model", [single])
      expect(error).toMatch(
        /^Failed to process the request\(s\) for model 'wrong_model_0', message: NameError: name 'undefined_name' is not defined\n\nAt:\n {2}.*model\.py\(\d+\): .*\n {2}.*model\.py\(\d+\): execute\n/,
      )
      expect((await failures(server)) - before).toBe(1)
    },
  },
  {
    name: "exceptions of the API have its name",
    proves: ["P2.raise.own"],
    run: async ({ run }) =>
      expect(await run('pb.Tensor("", np.zeros(1))')).toContain(
        "message: TritonModelException: Tensor name cannot be an empty string.",
      ),
  },
  {
    name: "an error of a response fails its request alone, without outputs",
    proves: ["P2.error.one", "P2.error.outputs", "P2.error.default"],
    run: async ({ client }) => {
      const answers = await Promise.all([1, 2, 3].map(() => client.infer("execute_error", [row])))
      expect(answers.map(({ error }) => error ?? "none").toSorted()).toEqual([
        "An error occurred during execution",
        "An error occurred during execution",
        "none",
      ])
      const both = `out = pb.Tensor("OUT", np.array([b"x"]))
return pb.InferenceResponse([out], pb.TritonError("own"))`
      expect(await client.infer("sync", [text("IN", both)])).toEqual({
        status: statusOf(client, "INTERNAL"),
        error: "own",
      })
    },
  },
  {
    name: "each error code has its status",
    proves: ["P2.error.codes"],
    run: async ({ client }) => {
      for (const code of Object.keys(codes).filter((name) => name !== "OK")) {
        expect(await client.infer("codes", [text("IN", code)])).toEqual({
          status: Object.entries(codes).find(([name]) => name === code)?.[1][client.transport],
          error: `error code: ${code}`,
        })
      }
    },
  },
]
