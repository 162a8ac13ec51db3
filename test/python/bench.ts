/**
 * Measures models in Python against the same bytes through a bare socket to another Python process, and against the
 * floor, a program that only does what every call of a process needs: `node test/python/bench.ts`. Calls alternate, so
 * other load of the machine meets all. Only the ratios of one run count, with all processes in the same place: to wake
 * another core takes longer than a small call.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Python } from "@nereid/python"
import { Effect, Exit, Layer, Result, Scope } from "effect"
import { python } from "../fixtures/python.ts"
import * as Placement from "./Placement.ts"

class Bytes extends Model.Service<Bytes>()("bytes", {
  inputs: { x: Tensor.UINT8(-1) },
  outputs: { y: Tensor.UINT8(-1) },
}) {}

/** Requests share batches. */
class Batches extends Model.Service<Batches>()("batches", {
  inputs: { x: Tensor.UINT8(-1) },
  outputs: { y: Tensor.UINT8(-1) },
  maxBatchSize: 16,
}) {}

class Texts extends Model.Service<Texts>()("texts", {
  inputs: { x: Tensor.BYTES(-1) },
  outputs: { y: Tensor.BYTES(-1) },
}) {}

type Call = () => Promise<unknown>

const file = (name: string) => join(import.meta.dirname, `models/${name}.py`)

/** A call of a model with this input, which releases the response as the transports do. */
const callOf =
  ({ calls }: RunningModel, tensor: TypedTensor): Call =>
  () =>
    new Promise<void>((resolve, reject) => {
      calls.submit({ id: "", inputs: [tensor], rows: 1, parameters: {}, deadline: undefined }, (outcome) => {
        if (Result.isFailure(outcome)) return reject(outcome.failure)
        outcome.success.release?.()
        resolve()
      })
    })

/** A process that runs this file of the folder, and a socket to it, which gives `receive` the length of each read. */
const open = async (
  executable: string,
  script: string,
  more: ReadonlyArray<string>,
  receive: (buffer: Buffer, count: number) => void,
) => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-bench-"))
  const path = join(folder, "socket")
  const child = spawn(executable, [join(import.meta.dirname, script), path, ...more], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  await once(child.stdout, "data")
  const buffer = Buffer.allocUnsafeSlow(2 ** 20)
  const socket = connect({
    path,
    onread: {
      buffer,
      callback: (count) => {
        receive(buffer, count)
        return true
      },
    },
  })
  await once(socket, "connect")
  const end = () => {
    socket.destroy()
    rmSync(folder, { recursive: true })
  }
  return { socket, end }
}

/** A round trip of this many bytes over a bare socket. */
const echo = async (executable: string, length: number) => {
  let left = 0
  let done = () => {}
  const { socket, end } = await open(executable, "echo.py", [String(length)], (_, count) => {
    left -= count
    if (left === 0) done()
  })
  const block = Buffer.alloc(length, 1)
  const call: Call = () =>
    new Promise<void>((resolve) => {
      left = length
      done = resolve
      socket.write(block)
    })
  return { call, end }
}

const floorHead = 16

/** A call of floor.py with this many bytes, whose answer has its own memory. */
const floor = async (executable: string, length: number) => {
  let answer: Buffer | undefined
  let filled = 0
  let done: (answer: Buffer) => void = () => {}
  const { socket, end } = await open(executable, "floor.py", [], (buffer, count) => {
    const start = answer === undefined ? floorHead : 0
    answer ??= Buffer.allocUnsafeSlow(Number(buffer.readBigUInt64LE(8)))
    answer.set(buffer.subarray(start, count), filled)
    filled += count - start
    if (filled < answer.length) return
    const whole = answer
    answer = undefined
    filled = 0
    done(whole)
  })
  const block = Buffer.alloc(length, 1)
  let number = 0n
  const call: Call = () =>
    new Promise((resolve) => {
      done = resolve
      const head = Buffer.allocUnsafe(floorHead)
      head.writeBigUInt64LE(number++, 0)
      head.writeBigUInt64LE(BigInt(length), 8)
      socket.cork()
      socket.write(head)
      socket.write(block)
      socket.uncork()
    })
  return { call, end }
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, next) => one - next)[values.length >> 1] ?? 0

/** Microseconds of one call each, as medians of alternating rounds. */
const compare = async (
  calls: ReadonlyArray<Call>,
  perRound: number,
  rounds: number,
): Promise<ReadonlyArray<number>> => {
  const times = calls.map((): Array<number> => [])
  for (let round = -2; round < rounds; round++) {
    for (const [index, call] of calls.entries()) {
      for (let number = 0; number < perRound; number++) {
        const startedAt = performance.now()
        await call()
        if (round >= 0) times[index]?.push((performance.now() - startedAt) * 1e3)
      }
    }
  }
  return times.map(median)
}

const scope = Scope.makeUnsafe()

const run = async (executable: string) => {
  const build = async <Self>(layer: Layer.Layer<Self, unknown>) =>
    Effect.runPromise(Effect.orDie(Layer.buildWithScope(layer, scope)))
  const model = async (options: Omit<Python.LayerOptions, "warmUp" | "responseCache">) => {
    const context = await build(Python.layer(Bytes, { ...options, python: executable }))
    return Effect.runPromise(
      Effect.provideContext(
        Effect.map(Bytes, ({ model }) => model),
        context,
      ),
    )
  }
  const triton = await model({ file: file("identity") })
  const plain = await model({ file: file("functions"), function: "same" })
  // The code of a call becomes fast only after some thousands.
  const small = Tensor.make("UINT8", [64], new Uint8Array(64))
  for (const running of [triton, plain]) {
    const call = callOf(running, small)
    for (let number = 0; number < 5000; number++) await call()
  }
  for (const place of Placement.all) {
    console.log(place.name)
    await sizes(executable, [triton, plain], place)
    await shared(executable, place)
  }
  const texts = await build(Python.layer(Texts, { file: file("identity"), python: executable }))
  const strings = await Effect.runPromise(
    Effect.provideContext(
      Effect.map(Texts, ({ model }) => model),
      texts,
    ),
  )
  const encoder = new TextEncoder()
  const words = Tensor.make(
    "BYTES",
    [1000],
    Array.from({ length: 1000 }, (_, index) => encoder.encode(`text ${index}`)),
  )
  const [inStrings = 0] = await compare([callOf(strings, words)], 50, 10)
  console.log(`1,000 strings: model.py ${inStrings.toFixed(0)} µs`)

  const later = await model({ file: file("functions"), function: "same_later", concurrency: 64 })
  const call = callOf(later, small)
  const startedAt = performance.now()
  let count = 0
  const caller = async () => {
    while (performance.now() - startedAt < 3000) {
      await call()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: 64 }, caller))
  const perSecond = count / ((performance.now() - startedAt) / 1000)
  console.log(`async def of 1 ms, 64 requests under way: ${perSecond.toFixed(0)} requests/s`)
}

/** Calls of one caller with each of the sizes, of a model.py and of a function. */
const sizes = async (executable: string, models: ReadonlyArray<RunningModel>, place: Placement.Placement) => {
  for (const [name, length, perRound, rounds] of [
    ["64 B", 64, 100, 30],
    ["64 KB", 64 * 1024, 50, 20],
    ["600 KB", 600 * 1024, 20, 15],
    ["10 MB", 10 * 1024 * 1024, 4, 10],
  ] as const) {
    const tensor = Tensor.make("UINT8", [length], new Uint8Array(length))
    const bare = await echo(executable, length)
    const least = await floor(executable, length)
    place.take()
    const calls = [bare.call, least.call, ...models.map((model) => callOf(model, tensor))]
    const [socket = 0, atLeast = 0, inModel = 0, inFunction = 0] = await compare(calls, perRound, rounds)
    console.log(
      `  ${name}: bare socket ${socket.toFixed(0)} µs, floor ${atLeast.toFixed(0)} µs (${ratio(socket, atLeast)}), model.py ${inModel.toFixed(0)} µs (${ratio(socket, inModel)}), ` +
        `function ${inFunction.toFixed(0)} µs (${ratio(socket, inFunction)})`,
    )
    bare.end()
    least.end()
  }
}

/** Callers whose requests share batches, against as many bytes through the socket at once. */
const shared = async (executable: string, place: Placement.Placement) => {
  const [callers, length] = [16, 64 * 1024]
  const calls: Array<Call> = []
  for (const options of [{ file: file("identity") }, { file: file("functions"), function: "same" }]) {
    const layer = Python.layer(Batches, { ...options, python: executable })
    const context = await Effect.runPromise(Effect.orDie(Layer.buildWithScope(layer, scope)))
    const { model } = await Effect.runPromise(Effect.provideContext(Batches, context))
    const call = callOf(model, Tensor.make("UINT8", [1, length], new Uint8Array(length)))
    calls.push(() => Promise.all(Array.from({ length: callers }, call)))
  }
  const bare = await echo(executable, callers * length)
  place.take()
  const times = await compare([bare.call, ...calls], 20, 40)
  const [socket = 0, inModel = 0, inFunction = 0] = times.map((time) => time / callers)
  console.log(
    `  64 KB, 16 callers: bare socket ${socket.toFixed(0)} µs each, model.py ${inModel.toFixed(0)} µs ` +
      `(${ratio(socket, inModel)}), function ${inFunction.toFixed(0)} µs (${ratio(socket, inFunction)})`,
  )
  bare.end()
}

const ratio = (bare: number, other: number): string => `${(bare / other).toFixed(2)} of its rate`

if (python !== undefined) {
  await run(python)
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
