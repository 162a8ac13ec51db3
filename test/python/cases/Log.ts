/** The log and the end of models in Python. */
import { expect } from "vitest"
import type { PythonCase } from "../PythonCase.ts"
import { numbers } from "../PythonRepository.ts"

const row = numbers("IN", "FP32", [4], [1, 2, 3, 4])

export const logCases: ReadonlyArray<PythonCase> = [
  {
    name: "log lines have the file and line of the model",
    proves: ["P3.log.levels", "P3.log.place"],
    run: async ({ client, newLog }) => {
      await client.infer("logs", [row])
      for (const [letter, kind] of ["ISpecific", "IInfo", "WWarning", "EError", "IVerbose"].map(
        (word) => [word.slice(0, 1), word.slice(1)] as const,
      )) {
        const line = new RegExp(`^${letter}\\d{4} \\S+ \\d+ model\\.py:\\d+\\] Execute-${kind} Msg!$`, "m")
        await expect.poll(newLog).toMatch(line)
      }
    },
  },
  {
    name: "log lines obey the settings of the log",
    proves: ["P3.log.settings"],
    run: async ({ client, request, newLog }) => {
      await request("logging", { log_verbose_level: 0, log_info: false, log_warning: false })
      const before = newLog().length
      await client.infer("logs", [row])
      // Its lines come in their order.
      await expect.poll(() => newLog().slice(before)).toContain("Execute-Error Msg!")
      await request("logging", { log_verbose_level: 1, log_info: true, log_warning: true })
      await client.infer("logs", [row])
      await expect.poll(() => newLog().slice(before)).toContain("Execute-Verbose Msg!")
      const [off = ""] = newLog().slice(before).split("Execute-Error Msg!")
      expect(off).not.toMatch(/Execute-\w+ Msg!/)
    },
  },
  {
    name: "finalize cannot call models",
    proves: ["P2.finalize.calls"],
    run: async ({ client, newLog }) => {
      expect(await client.unload("calling")).toBe(undefined)
      await expect
        .poll(newLog)
        .toMatch(/finalize of instance 'calling_0' failed: .*BLS is only supported during the 'execute' function\./)
      expect(await client.load("calling")).toBe(undefined)
    },
  },
  {
    name: "finalize runs at the unload, and an exception of it is only logged",
    proves: ["P2.finalize.raise", "P3.log.steps"],
    run: async ({ client, newLog }) => {
      expect((await client.infer("fini_error", [row])).error).toBe(undefined)
      expect(await client.unload("fini_error")).toBe(undefined)
      await expect.poll(newLog).toContain("Finalize-Info Msg!")
      await expect.poll(newLog).toContain("name 'undefined_variable' is not defined")
      expect(await client.load("fini_error")).toBe(undefined)
      await expect.poll(newLog).toContain("Initialize-Info Msg!")
      expect((await client.infer("fini_error", [row])).error).toBe(undefined)
    },
  },
]
