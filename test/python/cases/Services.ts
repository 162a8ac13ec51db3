/** Services of the server for models in Python: metrics, readiness, death, limits of time. */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { type CaseGroup, type CaseServer, dataOf } from "../PythonCase.ts"
import { type Parameters, statusOf } from "../PythonClient.ts"
import { numbers, pairOf, parameter, text, texts } from "../PythonRepository.ts"

const oneRow = (value: string) => ({ name: "IN", datatype: "BYTES", shape: [1, 1], data: [value] })

/** An expression: the error of a call of `gate`, or None. */
const failureOfGate = (given: string) =>
  `(lambda path, timeout: (lambda error: error and error.message())(pb.InferenceRequest(model_name="gate",
    requested_output_names=["OUT"], timeout=timeout,
    inputs=[pb.Tensor("IN", np.array([[path]], dtype=np.object_))]).exec().error()))(${given})`

const set = ({ fixture }: CaseServer, value: string, model = "ready") =>
  writeFileSync(join(fixture.path, `${model}/readiness`), value)

export const services: CaseGroup = {
  name: "services for models in Python",
  models: {
    one: { file: "triton_metrics", config: texts },
    two: { file: "triton_metrics", config: texts },
    ready: { file: "triton_ready", config: `${pairOf("FP32")} instance_group { count: 2 }` },
    gate: {
      file: "triton_gate",
      config: `${texts} max_batch_size: 1 dynamic_batching { default_queue_policy { allow_timeout_override: true } }`,
    },
    sync: { file: "triton_sync", config: texts },
    other: { file: "triton_sync", config: texts },
    slow: { file: "triton_sync", config: `${texts} ${parameter("execute_timeout_seconds", 1)}` },
  },
  files: (fixture) => fixture.write("ready/readiness", "true"),
  options: { control: "explicit", load: ["*"] },
  cases: [
    {
      name: "metrics are checked, shared by name, and shown with the labels of the code",
      proves: [
        "P3.metric.counter",
        "P3.metric.gauge",
        "P3.metric.histogram",
        "P3.metric.buckets",
        "P3.metric.value",
        "P3.metric.family",
        "P3.metric.kind",
        "P3.metric.labels",
        "P3.metric.deleted",
        "P3.metric.prefixes",
        "P3.metric.shown",
        "P3.metric.gone",
      ],
      run: async ({ client, metrics }) => {
        // Each case begins with new families.
        for (const name of ["one", "two"]) {
          expect(await client.unload(name)).toBe(undefined)
          expect(await client.load(name)).toBe(undefined)
        }
        await expect.poll(metrics).toContain('test_kept{model="two",version="1"} 0')
        for (const name of ["one", "two"]) expect(dataOf(await client.infer(name, [text("IN", "")]))).toEqual(["4"])
        const lines = (await metrics()).split("\n")
        expect(lines.filter((line) => line.includes("test_kept")).toSorted()).toEqual([
          expect.stringMatching(/^# HELP test_kept description of .*kept/),
          "# TYPE test_kept counter",
          'test_kept{model="one",version="1"} 2',
          'test_kept{model="two",version="1"} 2',
        ])
        expect(lines.filter((line) => line.startsWith("test_times"))).toEqual([
          'test_times_bucket{kind="x",le="1"} 2',
          'test_times_bucket{kind="x",le="2.5"} 4',
          'test_times_bucket{kind="x",le="+Inf"} 6',
          'test_times_sum{kind="x"} 19',
          'test_times_count{kind="x"} 6',
        ])
        // Released by the code itself.
        await expect.poll(metrics).not.toMatch(/test_(counter|gauge|histogram|empty|deleted)/)
        await client.unload("one")
        await expect.poll(metrics).not.toContain('test_kept{model="one"')
        expect(await metrics()).toContain('test_kept{model="two",version="1"} 2')
        await client.unload("two")
        await expect.poll(metrics).not.toContain("test_kept")
        for (const name of ["one", "two"]) expect(await client.load(name)).toBe(undefined)
      },
    },
    {
      name: "is_ready decides, and its reason is in the log",
      proves: [
        "P2.ready.true",
        "P2.ready.false",
        "P2.ready.raise",
        "P2.ready.kind",
        "P2.ready.log",
        "P2.ready.infer",
        "P2.ready.server",
      ],
      run: async (server) => {
        const { client } = server
        const both = async () => [await client.isReady("ready"), await client.isServerReady()]
        set(server, "true")
        expect(await both()).toEqual([true, true])
        const reasons = {
          false: "is not ready (user-defined check failed).",
          raise: "is_ready has failed",
          text: "is_ready() must return a boolean value",
        }
        for (const [content, reason] of Object.entries(reasons)) {
          set(server, content)
          expect(await both()).toEqual([false, false])
          const line = () =>
            server
              .newLog()
              .split("\n")
              .find((line) => line.includes(reason))
          await expect.poll(line).toContain("Model 'ready' version 1 is not ready: ")
        }
        expect((await client.infer("ready", [numbers("IN", "FP32", [1], [1])])).error).toBe(undefined)
        set(server, "true")
        expect(await both()).toEqual([true, true])
      },
    },
    {
      name: "is_ready may be a coroutine, and each instance must be ready",
      proves: ["P2.ready.async", "P2.ready.every"],
      run: async (server) => {
        const { client } = server
        for (const value of ["true", "false"]) {
          set(server, `async ${value}`)
          expect(await client.isReady("ready")).toBe(value === "true")
        }
        set(server, "first")
        expect(await client.isReady("ready")).toBe(false)
        await expect.poll(server.newLog).toContain("Model 'ready_0_1' is not ready (user-defined check failed).")
        set(server, "true")
      },
    },
    {
      name: "checks at the same time share a call",
      proves: ["P2.ready.shared"],
      run: async (server) => {
        const { client, fixture, newLog } = server
        const file = `go-${client.transport}`
        set(server, `wait ${file}`)
        const checks = Array.from({ length: 16 }, () => client.isReady("ready"))
        const calls = () => newLog().split(`is_ready waits for ${file}`).length - 1
        await expect.poll(calls).toBe(2)
        // The server has read all of them, which came before this one.
        expect(await client.isReady("sync")).toBe(true)
        writeFileSync(join(fixture.path, "ready", file), "")
        expect(await Promise.all(checks)).toEqual(Array.from({ length: 16 }, () => true))
        // One for each instance.
        expect(calls()).toBe(2)
        set(server, "true")
      },
    },
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
  ],
}

let closings = 0

/** A request that `gate` executes, and the function that lets it end. */
const closed = async ({ client, newLog, fixture }: CaseServer, parameters: Parameters) => {
  closings += 1
  const path = join(fixture.path, `open-${closings}`)
  const running = client.infer("gate", [oneRow(path)], { parameters })
  await expect.poll(newLog).toContain(`waits for ${path}`)
  return [running, () => writeFileSync(path, "")] as const
}
