/** Files and directories that cannot be read: they fail their own model, with a reason, and nothing else. */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { Worker, type WorkerOptions } from "node:worker_threads"
import { hasFifos, makeFifo } from "../../../test/fixtures/fifo.ts"
import { plus, repository } from "../../../test/fixtures/repository.ts"
import * as Files from "@nereid/onnx/internal/file/Files"
import { open } from "./Repository.fixture.ts"

const explicit = { control: "explicit", load: ["*"] } as const

const reasons = (entries: ReadonlyArray<{ readonly name: string; readonly reason?: string }>) =>
  Object.fromEntries(entries.map(({ name, reason }) => [name, reason]))

describe.runIf(hasFifos)("a file that is not regular", () => {
  it.live("is refused in each place", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      const notRegular = "expected a regular file"
      fixture.adding("good", 1, 1)
      makeFifo(join(fixture.path, "fifo/1/model.onnx"))
      mkdirSync(join(fixture.path, "device/1"), { recursive: true })
      symlinkSync("/dev/zero", join(fixture.path, "device/1/model.onnx"))
      fixture.write("config/1/model.onnx", plus(1))
      makeFifo(join(fixture.path, "config/config.pbtxt"))
      fixture.adding("labels", 1, 1, "output { name: 'Y' data_type: TYPE_FP32 dims: 1 label_filename: 'labels.txt' }")
      makeFifo(join(fixture.path, "labels/labels.txt"))
      const warmUp = "key: 'X' value: { data_type: TYPE_FP32 dims: 1 input_data_file: 'x' }"
      fixture.adding("warmup", 1, 1, `model_warmup { name: 'w' batch_size: 1 inputs { ${warmUp} } }`)
      makeFifo(join(fixture.path, "warmup/warmup/x"))
      fixture.write("script/config.pbtxt", "backend: 'nereid' output { name: 'Y' data_type: TYPE_FP32 dims: 1 }")
      makeFifo(join(fixture.path, "script/1/model.ts"))
      const { index, call, load } = yield* open(fixture, explicit)
      expect(reasons(index())).toEqual({
        config: expect.stringContaining(`config.pbtxt: it is a FIFO, ${notRegular}`),
        device: expect.stringContaining(`model.onnx: it is a device, ${notRegular}`),
        fifo: expect.stringContaining(`model.onnx: it is a FIFO, ${notRegular}`),
        good: "",
        labels: expect.stringContaining(`labels.txt: it is a FIFO, ${notRegular}`),
        script: expect.stringContaining(`model.ts: it is a FIFO, ${notRegular}`),
        warmup: expect.stringContaining(`warmup/x: it is a FIFO, ${notRegular}`),
      })
      expect(yield* call("good")).toBe(1)
      yield* Effect.flip(load("fifo"))
    }),
  )
})

describe.runIf(hasFifos)("names and links", () => {
  it.live("a looping or dangling link is a model that cannot be read", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.link("loop", "loop")
      fixture.link("nowhere", "dangling")
      fixture.write("a file", "")
      fixture.link("a file", "linked file")
      const { index, call, load } = yield* open(fixture, explicit)
      expect(reasons(index())).toEqual({
        dangling: expect.stringMatching(/^cannot read .*dangling: ENOENT/),
        good: "",
        loop: expect.stringMatching(/^cannot read .*loop: ELOOP/),
      })
      expect(yield* call("good")).toBe(1)
      expect((yield* Effect.flip(load("loop"))).message).toMatch(
        /^failed to load 'loop', failed to poll from model repository: cannot read .*ELOOP/,
      )
    }),
  )

  it.live("a link of a version that leads nowhere fails that version", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("m", 1, 1, "version_policy { all {} }")
      fixture.link("m/2", "m/2")
      fixture.adding("m", 3, 3)
      fixture.link("m/3/other", "m/3/other")
      const { index, call } = yield* open(fixture, { ...explicit, partialModelLoad: true })
      expect(index()).toMatchObject([
        { version: "1", state: "READY" },
        { version: "2", state: "UNAVAILABLE", reason: expect.stringMatching(/^Internal: cannot read .*m\/2: ELOOP/) },
        { version: "3", state: "READY" },
      ])
      expect(yield* call("m")).toBe(3)
    }),
  )

  it.live("a name with control characters is refused, and shown escaped", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.adding("new\nline", 1, 1)
      fixture.adding("bell\u0007", 1, 1, "name: 'other'")
      const { index, call } = yield* open(fixture, explicit)
      const rule = "the name of a model must not contain control characters"
      expect(index()).toEqual([
        { name: "bell\u0007", state: "UNAVAILABLE", reason: `invalid name "bell\\u0007": ${rule}` },
        { name: "good", version: "1", state: "READY", reason: "" },
        { name: "new\nline", state: "UNAVAILABLE", reason: `invalid name "new\\nline": ${rule}` },
      ])
      expect(yield* call("good")).toBe(1)
    }),
  )
})

/** Threads that never come back from a path with this word; their calls stall after a moment. */
const hanging = (word: string) => {
  const module = new URL("FileCall.ts", import.meta.resolve("@nereid/onnx/internal/file/Files")).href
  const entry = `
    const { parentPort, workerData } = require("node:worker_threads")
    parentPort.on("message", async (call) => {
      const { perform } = await import(${JSON.stringify(module)})
      Atomics.add(workerData, 0, 1)
      if (call.path.includes("${word}")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
      try {
        parentPort.postMessage({ _tag: "Done", result: perform(call, () => {}) })
      } catch ({ message, code }) {
        parentPort.postMessage({ _tag: "Failed", message, code })
      }
    })`
  const threads: Array<Worker> = []
  const spawn = (options: WorkerOptions) => {
    const thread = new Worker(entry, { ...options, eval: true })
    threads.push(thread)
    return thread
  }
  return Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Files.FilePool({ spawn, stallTimeout: 2000 })),
      () => Effect.promise(() => Promise.all(threads.map((thread) => thread.terminate()))),
    ),
    (pool) => ({ pool, threads }),
  )
}

describe("a file system that does not answer", () => {
  it.live("fails its models alone, and is asked once", () =>
    Effect.gen(function* () {
      const fixture = yield* repository
      fixture.adding("good", 1, 1)
      fixture.adding("hangs", 1, 1)
      fixture.link("hangs", "linked-hangs")
      const { pool, threads } = yield* hanging("hangs")
      const { index, call, load, refresh } = yield* Effect.provideService(open(fixture, explicit), Files.Pool, pool)
      const noAnswer = expect.stringMatching(/^cannot read .*: (the file system did not answer|an earlier call)/)
      expect(reasons(index())).toEqual({ good: "", hangs: noAnswer, "linked-hangs": noAnswer })
      expect(yield* call("good")).toBe(1)
      const before = threads.length
      expect(yield* Effect.flip(load("hangs"))).toMatchObject({
        message: expect.stringContaining("an earlier call has not returned"),
      })
      fixture.adding("later", 1, 2)
      yield* refresh
      yield* load("later")
      expect(yield* call("later")).toBe(2)
      expect(threads).toHaveLength(before)
    }),
  )
})
