/** Processes that die, hang or are busy. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { type CaseServer, dataOf, type PythonCase } from "../PythonCase.ts"
import { type Parameters, statusOf } from "../PythonClient.ts"
import { text } from "../PythonRepository.ts"

const oneRow = (value: string) => ({ name: "IN", datatype: "BYTES", shape: [1, 1], data: [value] })

/** An expression: the error of a call of `gate`, or None. */
const failureOfGate = (given: string) =>
  `(lambda path, timeout: (lambda error: error and error.message())(pb.InferenceRequest(model_name="gate",
    requested_output_names=["OUT"], timeout=timeout,
    inputs=[pb.Tensor("IN", np.array([[path]], dtype=np.object_))]).exec().error()))(${given})`

let closings = 0

/** A request that `gate` executes, and the function that lets it end. */
const closed = async ({ client, newLog, fixture }: CaseServer, parameters: Parameters) => {
  closings += 1
  const path = join(fixture.path, `open-${closings}`)
  const running = client.infer("gate", [oneRow(path)], { parameters })
  await expect.poll(newLog).toContain(`waits for ${path}`)
  return [running, () => writeFileSync(path, "")] as const
}

export const deathCases: ReadonlyArray<PythonCase> = [
  {
    name: "a process that dies fails its requests alone, and is started again",
    proves: ["P5.death.request", "P5.death.restart", "P5.death.others"],
    run: async ({ client, run, newLog }) => {
      const first = await run("return os.getpid()")
      expect(await client.infer("sync", [text("IN", "os.kill(os.getpid(), 9)")])).toEqual({
        status: statusOf(client, "INTERNAL"),
        error: "Stub process 'sync_0' is not healthy.",
      })
      expect(await run("return 1", "other")).toBe("1")
      await expect.poll(() => client.isReady("sync")).toBe(true)
      const second = await run("return os.getpid()")
      expect(second).not.toBe(first)
      await expect.poll(newLog).toContain("The process of instance sync_0 died: signal SIGKILL")
      expect((await client.infer("sync", [text("IN", "os._exit(3)")])).status).toBe(statusOf(client, "INTERNAL"))
      await expect.poll(() => client.isReady("sync")).toBe(true)
    },
  },
  {
    name: "a model whose process starts again is not ready, and calls of it say so",
    proves: ["P5.death.ready", "P6.error.not-ready"],
    run: async ({ client, run, fixture }) => {
      const hold = join(fixture.path, "gate/hold")
      writeFileSync(hold, "")
      expect((await client.infer("gate", [oneRow("die")])).error).toBe("Stub process 'gate_0' is not healthy.")
      expect(await client.isReady("gate")).toBe(false)
      expect(await run(`return ${failureOfGate('"/", timeout=0')}`)).toBe(
        "Model gate - Error when running inference: Failed for execute the inference request. " +
          "Model 'gate' is not ready.",
      )
      rmSync(hold)
      await expect.poll(() => client.isReady("gate")).toBe(true)
      expect(dataOf(await client.infer("gate", [oneRow("/")]))).toEqual(["/"])
    },
  },
  {
    name: "an execution that takes too long ends its process, with the stacks in the log",
    proves: ["P5.hang.limit"],
    run: async ({ client, run, newLog }) => {
      expect(await run("def loop_for_ever():\n    while True: pass\nloop_for_ever()", "slow")).toBe(
        "failed: execute of instance 'slow_0' did not end within 1000 ms; its process was ended",
      )
      await expect.poll(newLog).toContain("loop_for_ever")
      await expect.poll(() => client.isReady("slow")).toBe(true)
      expect(await run("return 1", "slow")).toBe("1")
    },
  },
  {
    name: "a timeout acts while a request waits, and not during its execution",
    proves: ["P5.timeout.queued", "P5.timeout.executing"],
    run: async (server) => {
      const { client } = server
      const [running, open] = await closed(server, { timeout: 400_000 })
      const { status, error } = await client.infer("gate", [oneRow("/")], { parameters: { timeout: 500_000 } })
      expect([status, error]).toEqual([statusOf(client, "UNAVAILABLE"), "Request timeout expired"])
      // Longer than its own timeout.
      open()
      expect((await running).error).toBe(undefined)
    },
  },
  {
    name: "the timeout of a call passes in the queue of the called model",
    proves: ["P6.timeout.expired"],
    run: async (server) => {
      const [running, open] = await closed(server, {})
      const code = `error = ${failureOfGate('"/", timeout=1000')}`
      expect(await server.run(`${code}\nreturn error`)).toBe("Request timeout expired")
      open()
      expect((await running).error).toBe(undefined)
      expect(await server.run(`return ${failureOfGate('"/", timeout=60_000_000')}`)).toBe("None")
    },
  },
]
