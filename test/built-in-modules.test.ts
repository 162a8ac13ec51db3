/** Modules of Node in the bundle of the command: what its build writes instead of their imports. */
import { builtinModules, createRequire } from "node:module"
import type * as Zlib from "node:zlib"
import { describe, expect, it } from "vitest"
import * as BuiltInModules from "../.ci/BuiltInModules.ts"

const require = createRequire(import.meta.url)

const evaluated = (name: string): Promise<Record<string, unknown>> =>
  import(/* @vite-ignore */ `data:text/javascript,${encodeURIComponent(BuiltInModules.source(name))}`)

const names = builtinModules.filter(
  (name) => !name.startsWith("_") && !/^(?:inspector|sys|punycode|trace_events|wasi|ffi)/u.test(name),
)

describe.each(names)("%s", (name) => {
  it("has the names of the module, with functions in place of plain functions", async () => {
    const made = await evaluated(`node:${name.replace(/^node:/u, "")}`)
    const original: Record<string, unknown> = require(name)
    const own = Object.keys(original).filter((key) => key !== "default" && /^[A-Za-z_$][\w$]*$/u.test(key))
    expect(
      Object.keys(made)
        .filter((key) => key !== "default")
        .toSorted(),
    ).toEqual(own.toSorted())
    for (const key of own) {
      if (typeof original[key] === "function" && /^[a-z]/u.test(key)) expect(made[key], key).toBeTypeOf("function")
      else expect(made[key], key).toBe(original[key])
    }
  })
})

it("functions call those of the module, and keep what promisify reads of them", async () => {
  const zlib = await evaluated("node:zlib")
  const { gzipSync, gunzipSync, constants } = zlib as typeof Zlib
  expect(gunzipSync(gzipSync("text", { level: constants.Z_BEST_SPEED })).toString()).toBe("text")
  const { execFile } = await evaluated("node:child_process")
  expect(execFile).toBe(require("node:child_process").execFile)
})
