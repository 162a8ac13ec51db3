/** Models that load: detection, arguments, completion, processes, log. */
import { expect } from "vitest"
import { type CaseGroup, dataOf } from "../PythonCase.ts"
import { numbers, text } from "../PythonRepository.ts"
import { logCases } from "./Log.ts"
import { lifeModels, writeLifeModels } from "./LifeModels.ts"

const row = numbers("IN", "FP32", [4], [1, 2, 3, 4])

export const life: CaseGroup = {
  name: "the life of models in Python",
  models: lifeModels,
  files: writeLifeModels,
  options: { control: "explicit", load: ["*"] },
  cases: [
    {
      name: "initialize receives seven texts, the completed configuration among them",
      proves: [
        "P2.args.seven",
        "P2.args.config",
        "P2.args.kind",
        "P2.args.instance",
        "P2.args.device",
        "P2.args.repository",
        "P2.args.version",
        "P2.args.name",
        "P2.args.parameters",
      ],
      run: async ({ client, fixture }) => {
        const seen = async (model: string) =>
          JSON.parse(String(dataOf(await client.infer(model, [text("IN", "")]))?.[0]))
        expect(await seen("init_args")).toMatchObject({
          model_instance_kind: "CPU",
          model_instance_name: "init_args_0_0",
          model_instance_device_id: "0",
          model_repository: `${fixture.path}/init_args`,
          model_version: "1",
          model_name: "init_args",
          directory: `${fixture.path}/init_args/1`,
          keys: 7,
          types: ["str"],
          parameters: { k: { string_value: "v" } },
          batch: 0,
          input: { name: "IN", data_type: "TYPE_STRING", dims: [1], optional: false },
          environment: [],
        })
        const other = await seen("on_model")
        expect(other).toMatchObject({ model_instance_kind: "MODEL", model_instance_device_id: "0" })
        expect(other.model_instance_name).toMatch(/^g_[01]$/)
      },
    },
    {
      name: "a model.py is found by its backend, by itself, by its name, and under another name",
      proves: ["P2.optional", "P1.detect.backend", "P1.detect.file", "P1.detect.name", "P1.file.default"],
      run: async ({ client }) => {
        for (const model of ["completed", "bare"]) {
          const { outputs } = await client.infer(model, [numbers("IN", "FP32", [1, 4], [1, 2, 3, 4])])
          expect(outputs).toMatchObject([{ name: "OUT", shape: [1, 4], data: [2, 4, 6, 8] }])
          expect(await client.config(model)).toMatchObject({ backend: "python" })
        }
        for (const model of ["by_name", "other"]) {
          const { outputs } = await client.infer(model, [{ ...row, name: "INPUT0" }])
          expect(outputs).toMatchObject([{ name: "OUTPUT0", data: [1, 2, 3, 4] }])
        }
      },
    },
    {
      name: "the code completes the configuration",
      proves: ["P2.complete.result", "P3.config.add", "P3.config.dynamic"],
      run: async ({ client }) =>
        expect(await client.config("bare")).toMatchObject({
          backend: "python",
          default_model_filename: "model.py",
          max_batch_size: 4,
          dynamic_batching: { preferred_batch_size: [4] },
          input: [{ name: "IN", data_type: "TYPE_FP32", dims: [4] }],
          output: [{ name: "OUT", data_type: "TYPE_FP32", dims: [4] }],
          instance_group: [{ count: 1, kind: "KIND_CPU" }],
        }),
    },
    {
      name: "instances are processes that load at the same time, and share nothing; one by default",
      proves: [
        "P1.process.each",
        "P1.process.default",
        "P1.process.parallel",
        "P1.process.shared",
        "P1.process.environment",
      ],
      run: async ({ client }) => {
        const seen = async (model: string): Promise<readonly [string, number, number, string | null]> =>
          JSON.parse(String(dataOf(await client.infer(model, [text("IN", "")]))?.[0]))
        // They have waited for each other in initialize, and do so in execute.
        const before = (await Promise.all([seen("apart"), seen("apart")])).toSorted()
        const after = (await Promise.all([seen("apart"), seen("apart")])).toSorted()
        expect(before.map(([name]) => name)).toEqual(["apart_0_0", "apart_0_1"])
        expect(new Set(before.map(([, pid]) => pid)).size).toBe(2)
        // A global of the module counts the executions of its process.
        expect(after).toEqual(before.map(([name, pid, count, given]) => [name, pid, count + 1, given]))
        expect(before.map(([, , , given]) => given)).toEqual(["shown", "shown"])
        expect(await client.config("single")).toMatchObject({ instance_group: [{ count: 1 }] })
        expect((await seen("single")).slice(0, 1)).toEqual(["single_0"])
      },
    },
    {
      name: "the steps of a life follow each other, and the first is in a process before",
      proves: ["P2.order", "P2.complete.process", "P2.complete.once", "P2.finalize.unload"],
      run: async ({ client, log, newLog }) => {
        const steps = dataOf(await client.infer("steps", [text("IN", "")]))
        expect(steps).toEqual(["__init__ initialize execute"])
        expect(await client.unload("steps")).toBe(undefined)
        await expect.poll(newLog).toContain("step __init__ initialize execute finalize")
        expect(await client.load("steps")).toBe(undefined)
        const pids = [...log().matchAll(/step (\w+) in (\d+)/g)].map(([, name, pid]) => [name, pid] as const)
        const completions = pids.filter(([name]) => name === "auto_complete_config")
        // The same files are completed once.
        expect(completions).toHaveLength(1)
        expect(pids[0]).toEqual(completions[0])
        expect(pids.filter(([, pid]) => pid === completions[0]?.[1])).toHaveLength(1)
      },
    },
    {
      name: "the code chooses the decoupled mode",
      proves: ["P3.config.policy"],
      run: async ({ client }) =>
        expect(await client.config("policy")).toMatchObject({ model_transaction_policy: { decoupled: true } }),
    },
    ...logCases,
  ],
}
