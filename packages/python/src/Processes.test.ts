/** Processes of Python models beside their server: what they share with it, and that none outlives it. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tensor } from "@nereid/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { expect, vi } from "vitest"
import { Program } from "../../../test/Program.ts"
import { modelFile, Pid, python, Shout } from "./Python.fixture.ts"
import { Python } from "./index.ts"

const of = (name: string) => ({
  file: modelFile("functions"),
  function: name,
  ...(python !== undefined && { python }),
})

const zero = { x: Tensor.make("FP32", [1], Float32Array.of(0)) }

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe.skipIf(python === undefined)("a process", () => {
  it.live.skipIf(!existsSync("/proc/self/fd"))(
    "has its output, two sockets and the shared memory open, and no other descriptor",
    () =>
      Effect.gen(function* () {
        const { infer } = yield* Shout
        const { loud } = yield* infer({ text: "" })
        // Its input is /dev/null. The last one is the folder that lists them.
        const [input, ...opened] = loud.replace(/ anon_inode$/, "").split(" ")
        // Newer builds of libffi, which ctypes uses, keep their own file open.
        const others = opened.filter((kind) => !/\/libffi\.so[.\d]*$/.test(kind))
        assert.strictEqual(input, "/dev/null")
        const sockets = others.filter((kind) => kind === "socket")
        assert.strictEqual(sockets.length, 4)
        assert.deepEqual(new Set(others), new Set(["socket", "/memfd"]))
      }).pipe(Effect.provide(Python.layer(Shout, of("descriptors")))),
  )

  it.live("leaves nothing in the temporary folder", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "nereid-test-"))
      vi.stubEnv("TMPDIR", folder)
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          vi.unstubAllEnvs()
          rmSync(folder, { recursive: true })
        }),
      )
      yield* Layer.build(Python.layer(Pid, of("process_id")))
      assert.deepEqual(readdirSync(folder), [])
    }),
  )

  it.live("ends by itself after its server was killed, also while Python computes", () =>
    Effect.gen(function* () {
      for (const work of ["idle", "busy"]) {
        const program = new Program(["--input-type=module", "--eval", serving(work)])
        const [, pid = ""] = yield* Effect.promise(() => program.match(/pid (\d+)/))
        assert.isTrue(isAlive(Number(pid)))
        program.signal("SIGKILL")
        yield* Effect.promise(() => expect.poll(() => isAlive(Number(pid)), { timeout: 10_000 }).toBe(false))
      }
    }),
  )

  it.live("may be killed at any time under traffic: each request has a result, or an error that says so", () =>
    Effect.gen(function* () {
      const layer = Python.layer(Pid, { ...of("process_id"), instances: 2, restart: { delay: 1, times: 100 } })
      const { infer } = yield* Effect.provideContext(Pid, yield* Layer.build(layer))
      const pids = new Set<number>()
      const answers: Array<string> = []
      let kills = 0
      const call = Effect.map(Effect.result(infer(zero)), (answer) => {
        if (Result.isSuccess(answer)) pids.add(Number(answer.success.pid))
        else answers.push(`${answer.failure._tag}: ${answer.failure.message}`)
      })
      const kill = Effect.sync(() => {
        const [pid] = [...pids].slice(-1)
        if (pid === undefined) return
        pids.clear()
        if (isAlive(pid)) kills += 1
        process.kill(pid, "SIGKILL")
      }).pipe(Effect.catchDefect(() => Effect.void))
      const caller = Effect.repeat(call, { until: () => kills >= 20 })
      const killer = Effect.andThen(Effect.sleep(10), kill).pipe(Effect.repeat({ until: () => kills >= 20 }))
      yield* Effect.all([killer, ...Array.from({ length: 8 }, () => caller)], { concurrency: "unbounded" })
      const allowed = /^ExecutionFailed: Stub process 'pid_0_[01]' is not healthy\.$|^(ModelNotReady|Unavailable): /
      assert.deepEqual(
        answers.filter((answer) => !allowed.test(answer)),
        [],
      )
      // It still serves.
      yield* Effect.repeat(Effect.result(infer(zero)), { until: Result.isSuccess }).pipe(Effect.timeout("20 seconds"))
    }),
  )
})

/** A program with a model whose process prints its id, and then ends its execution or computes for ever. */
const serving = (work: string): string => `
  import { Model, Tensor } from "@nereid/core"
  import { Python } from "@nereid/python"
  import { Effect } from "effect"
  class Numbers extends Model.Service()("numbers", { inputs: { x: Tensor.FP32(1) }, outputs: { y: Tensor.FP32(1) } }) {}
  const layer = Python.layer(Numbers, ${JSON.stringify(of(work))})
  const program = Effect.gen(function* () {
    yield* (yield* Numbers).infer({ x: Tensor.make("FP32", [1], Float32Array.of(0)) })
    yield* Effect.never
  })
  await Effect.runPromise(Effect.provide(program, layer))
`
