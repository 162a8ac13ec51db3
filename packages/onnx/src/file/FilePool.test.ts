/** Threads that are blocked by a file system that does not answer, in place of which a thread waits in a FIFO. */
import { spawn as spawnProcess } from "node:child_process"
import { once } from "node:events"
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { hasFifos, makeFifo } from "../../../../test/fixtures/fifo.ts"
import type { FileReply } from "./FileCall.ts"
import { FilePool } from "./FilePool.ts"
import { type Spawn, spawn } from "./FileThread.ts"

let folder = ""
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nereid-pool-"))
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true })
})

const patient = { timeout: 10_000 }

/** The time after which every call that is under way has stalled. */
const stall = () => vi.advanceTimersByTime(60_000)

/** Reads what it is told to, waiting for a writer of a FIFO. */
const reader = `
  const { parentPort, workerData } = require("node:worker_threads")
  const { readFileSync } = require("node:fs")
  parentPort.on("message", ({ path }) => {
    const result = new Uint8Array(readFileSync(path))
    parentPort.postMessage({ _tag: "Done", result })
  })
  Atomics.add(workerData, 0, 1)`

/** Loads its modules for ever, unless the test says that it has them. */
const silent: Spawn = (options) =>
  new Worker(`require("node:worker_threads").parentPort.on("message", () => {})`, { ...options, eval: true })

const blocking: Spawn = (options) => new Worker(reader, { ...options, eval: true })

const poolOf = (start: Spawn) => {
  const threads: Array<Worker> = []
  const pool = new FilePool({
    spawn: (options) => {
      const thread = start(options)
      threads.push(thread)
      return thread
    },
  })
  const read = (path: string) =>
    new Promise<FileReply>((resolve) => pool.call({ name: "read", path, maxBytes: 1000 }, resolve))
  return { pool, threads, read }
}

const text = (reply: FileReply) =>
  reply._tag === "Done" && reply.result instanceof Uint8Array ? Buffer.from(reply.result).toString() : reply

const failure = (message: string) => ({ _tag: "Failed", message: expect.stringContaining(message) })

const regular = (name = "x") => {
  const path = join(folder, name)
  writeFileSync(path, name)
  return path
}

const fifo = (name: string) => {
  const path = join(folder, name)
  makeFifo(path)
  return path
}

/** Lets these threads read nothing, and waits for their ends. A thread may not have come to its FIFO yet. */
const release = (paths: ReadonlyArray<string>, threads: ReadonlyArray<Worker>) => {
  const alive = new Set(threads)
  for (const thread of threads) thread.once("exit", () => alive.delete(thread))
  return expect
    .poll(() => {
      for (const path of paths) closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK))
      return alive.size
    }, patient)
    .toBe(0)
}

describe("calls", () => {
  it("are performed by one thread while it is fast", async () => {
    const { read, threads, pool } = poolOf(spawn)
    pool.prepare()
    pool.prepare()
    expect(text(await read(regular()))).toBe("x")
    const missing = await read(join(folder, "no"))
    expect(missing).toMatchObject({ _tag: "Failed", code: "ENOENT" })
    expect(threads).toHaveLength(1)
  })

  it("wait for the first thread that starts, and not for busy ones", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] })
    const progress: Array<Int32Array<SharedArrayBuffer>> = []
    const { read, threads } = poolOf((options) => {
      progress.push(options.workerData)
      return silent(options)
    })
    const calls = Promise.all(["one", "two", "three"].map(read))
    vi.advanceTimersByTime(1000)
    expect(threads).toHaveLength(1)
    for (const first of progress) Atomics.add(first, 0, 1)
    vi.advanceTimersByTime(1000)
    expect(threads).toHaveLength(3)
    vi.useRealTimers()
    for (const thread of threads) await thread.terminate()
    await calls
  })

  it("have a new thread after idle ones were released, and keep a busy one", async () => {
    const { read, threads, pool } = poolOf(spawn)
    await read(regular())
    const ended = once(threads[0] ?? expect.unreachable(), "exit")
    pool.release()
    await ended
    const reading = read(regular())
    pool.release()
    expect(text(await reading)).toBe("x")
    expect(threads).toHaveLength(2)
  })

  it("fail if their thread dies, and the next one has another thread", async () => {
    let count = 0
    const { read } = poolOf((options) => {
      count += 1
      return count === 1 ? new Worker("process.exit(3)", { ...options, eval: true }) : spawn(options)
    })
    expect(await read(regular())).toEqual(failure("its file thread died: exit code 3"))
    expect(text(await read(regular()))).toBe("x")
  })

  it("fail if no thread starts", async () => {
    const { read } = poolOf(() => {
      throw new Error("no memory")
    })
    expect(await read(regular())).toEqual(failure("the file thread failed to start: no memory"))
  })
})

describe.runIf(hasFifos)("a thread that is blocked", () => {
  it("fails its call alone, and its path at once until it returns", async () => {
    const { read, threads } = poolOf(blocking)
    const path = fifo("hangs")
    const [stalled, same] = [read(path), read(path)]
    expect(text(await read(regular()))).toBe("x")
    stall()
    expect(await stalled).toEqual(failure("the file system did not answer within 30 seconds"))
    expect(await same).toEqual(failure("the file system did not answer"))
    expect(await read(path)).toEqual(failure("an earlier call has not returned"))
    expect(threads).toHaveLength(2)
    await release([path], threads.slice(0, 1))
    rmSync(path)
    expect(text(await read(regular("hangs")))).toBe("hangs")
  })

  it("does not delay compression, and 16 of them are the most", async () => {
    const { read, threads } = poolOf(blocking)
    const paths = Array.from({ length: 16 }, (_, index) => fifo(`hangs${index}`))
    const reads = Promise.all(paths.map(read))
    for (let count = 4; count <= 16; count += 4) {
      await expect.poll(() => threads.length, patient).toBe(count)
      expect((await promisify(gzip)("x")).length).toBeGreaterThan(0)
      stall()
    }
    for (const reply of await reads) expect(reply).toEqual(failure("did not answer"))
    expect(await read(regular())).toEqual(
      failure("16 file system calls have not returned, and no further file is read until one does"),
    )
    await release(paths, threads.slice(0, 16))
    expect(text(await read(regular()))).toBe("x")
  })

  it.each(["process.exitCode = 7", "process.exit(7)"])("does not keep the process: %s", async (end) => {
    const path = fifo("hangs")
    const program = `
      import { Worker } from "node:worker_threads"
      import { FilePool } from ${JSON.stringify(import.meta.resolve("./FilePool.ts"))}
      const spawn = (options) => new Worker(${JSON.stringify(reader)}, { ...options, eval: true })
      const pool = new FilePool({ spawn, stallTimeout: 200 })
      pool.call({ name: "read", path: ${JSON.stringify(path)}, maxBytes: 1 }, () => { ${end} })`
    const child = spawnProcess(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" })
    expect(await once(child, "exit")).toEqual([7, null])
  })
})
