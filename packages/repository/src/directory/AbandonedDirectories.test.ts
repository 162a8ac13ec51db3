/** Directories of overrides after a process was killed: removed at the next start, and no others. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as AbandonedDirectories from "./AbandonedDirectories.ts"
import * as OverrideDirectory from "./OverrideDirectory.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "nereid-abandoned-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true })),
)

/** Makes a directory in another process, which is then killed. Returns its name. */
const abandoned = (temporary: string) =>
  Effect.promise(async () => {
    const program = `
      import { Effect } from "effect"
      import * as OverrideDirectory from ${JSON.stringify(import.meta.resolve("./OverrideDirectory.ts"))}
      const files = new Map([["1/model.onnx", new Uint8Array(3)]])
      await Effect.runPromise(Effect.scoped(Effect.gen(function* () {
        yield* OverrideDirectory.make("m", files)
        process.kill(process.pid, "SIGKILL")
      })))`
    const before = new Set(readdirSync(temporary))
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      env: { ...process.env, TMPDIR: temporary },
      cwd: import.meta.dirname,
      stdio: ["ignore", "inherit", "inherit"],
    })
    expect(await once(child, "exit")).toEqual([null, "SIGKILL"])
    const [name = "", other] = readdirSync(temporary).filter((entry) => !before.has(entry))
    expect(other).toBeUndefined()
    expect(existsSync(join(temporary, name, "model/1/model.onnx"))).toBe(true)
    return name
  })

describe.runIf(process.platform !== "win32")("at a start", () => {
  it.live("the directory of a killed process is removed, and links in it are not followed", () =>
    Effect.gen(function* () {
      const temporary = yield* folder
      const kept = join(temporary, "kept")
      mkdirSync(kept)
      writeFileSync(join(kept, "file"), "")
      const name = yield* abandoned(temporary)
      symlinkSync(kept, join(temporary, name, "model/link"))
      yield* AbandonedDirectories.remove(temporary)
      expect(readdirSync(temporary)).toEqual(["kept"])
      expect(readdirSync(kept)).toEqual(["file"])
    }),
  )

  it.live("a directory in use stays", () =>
    Effect.gen(function* () {
      const { path } = yield* OverrideDirectory.make("m", new Map([["1/x", new Uint8Array(1)]]))
      yield* AbandonedDirectories.remove(tmpdir())
      expect(readdirSync(path)).toEqual(["1"])
    }),
  )

  it.live("a directory that this program has not made stays", () =>
    Effect.gen(function* () {
      const temporary = yield* folder
      const [renamed, open, linked] = [
        yield* abandoned(temporary),
        yield* abandoned(temporary),
        yield* abandoned(temporary),
      ]
      renameSync(join(temporary, renamed), join(temporary, "nereid-model-other-name"))
      chmodSync(join(temporary, open), 0o770)
      mkdirSync(join(temporary, "elsewhere"))
      renameSync(join(temporary, linked), join(temporary, "elsewhere/x"))
      symlinkSync(join(temporary, "elsewhere/x"), join(temporary, linked))
      // Without a socket, or with a file in place of one.
      for (const name of ["nereid-model-aaaaaa", "nereid-model-bbbbbb"])
        mkdirSync(join(temporary, name), { mode: 0o700 })
      writeFileSync(join(temporary, "nereid-model-bbbbbb/owner"), "")
      const before = readdirSync(temporary)
      yield* AbandonedDirectories.remove(temporary)
      expect(readdirSync(temporary)).toEqual(before)
      expect(existsSync(join(temporary, "elsewhere/x/model"))).toBe(true)
    }),
  )
})
