/** Readiness by the code of a model. A file beside the model has the result of is_ready. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import type { CaseServer, PythonCase } from "../PythonCase.ts"
import { numbers } from "../PythonRepository.ts"

const set = ({ fixture }: CaseServer, value: string, model = "ready") =>
  writeFileSync(join(fixture.path, `${model}/readiness`), value)

export const readinessCases: ReadonlyArray<PythonCase> = [
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
]
