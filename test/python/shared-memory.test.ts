/** Shared memory of clients, which the processes of Python models map: the server neither reads nor writes it. */
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { basename } from "node:path"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { SharedMemoryObject } from "../../packages/server/src/memory/SharedMemoryObject.ts"
import { python } from "../fixtures/python.ts"
import { serve, type Served, write } from "./PythonRepository.ts"

const length = 50_000
const tensors = ["input", "output"]
  .map((side) => `${side} { name: "${side.toUpperCase()}0" data_type: TYPE_UINT8 dims: -1 }`)
  .join("\n")
const model = (more = "") => ({ file: "triton_mapped", config: `max_batch_size: 4 ${tensors} ${more}` })

/** An object in /dev/shm with the numbers from 0 to 250, again and again, and then room for an output. */
const object = () => {
  const folder = mkdtempSync("/dev/shm/nereid-test-")
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = `${folder}-object`
  onTestFinished(() => rmSync(path, { force: true }))
  const input = Uint8Array.from({ length }, (_, index) => index % 251)
  writeFileSync(path, Buffer.concat([input, Buffer.alloc(length)]))
  return { path, input, output: () => readFileSync(path).subarray(length) }
}

/** Reads and writes of regions by the server. */
const watched = () => {
  const [read, wrote] = [
    vi.spyOn(SharedMemoryObject.prototype, "read"),
    vi.spyOn(SharedMemoryObject.prototype, "write"),
  ]
  onTestFinished(() => void vi.restoreAllMocks())
  return () => read.mock.calls.length + wrote.mock.calls.length
}

const register = async ({ request }: Served, path: string) => {
  const body = { key: `/${basename(path)}`, offset: 0, byte_size: 2 * length }
  expect((await request("systemsharedmemory/region/r/register", body)).status).toBe(200)
}

const inRegion = (offset: number, size: number) => ({
  shared_memory_region: "r",
  shared_memory_byte_size: size,
  shared_memory_offset: offset,
})

/** A request whose input and output are in the region. */
const infer = ({ request }: Served, name: string, rows = 1, size = length) =>
  request(`models/${name}/infer`, {
    inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [rows, size / rows], parameters: inRegion(0, size) }],
    outputs: [{ name: "OUTPUT0", parameters: inRegion(length, length) }],
  })

describe.skipIf(python === undefined || !existsSync("/dev/shm"))("shared memory of clients", () => {
  it("is mapped by the process: inputs are read and outputs written there, and the input stays as it was", async () => {
    const served = await serve(await write({ mapped: model() }))
    const { path, input, output } = object()
    await register(served, path)
    const copies = watched()
    for (const rows of [1, 4]) {
      const { status, body } = await infer(served, "mapped", rows)
      expect([status, body.parameters]).toEqual([200, { mapped: true }])
      expect(body.outputs[0]).toEqual({
        name: "OUTPUT0",
        datatype: "UINT8",
        shape: [rows, length / rows],
        parameters: inRegion(length, length),
      })
      expect(output().equals(input.map((value) => value + 1))).toBe(true)
      writeFileSync(path, Buffer.concat([input, Buffer.alloc(length)]))
    }
    expect(readFileSync(path).subarray(0, length).equals(input)).toBe(true)
    expect(copies()).toBe(0)
  })

  it("of a small tensor, and of a model with a response cache, is copied", async () => {
    const served = await serve(await write({ mapped: model(), cached: model("response_cache { enable: true }") }))
    const { path, input, output } = object()
    await register(served, path)
    for (const [name, size] of [
      ["mapped", 1000],
      ["cached", length],
      ["cached", length],
    ] as const) {
      const { body } = await infer(served, name, 1, size)
      expect(body.parameters).toEqual({ mapped: false })
      expect(
        output()
          .subarray(0, size)
          .equals(input.subarray(0, size).map((value) => value + 1)),
      ).toBe(true)
      writeFileSync(path, Buffer.concat([input, Buffer.alloc(length)]))
    }
  })

  it("that is too small for an output fails the request, and nothing is written", async () => {
    const served = await serve(await write({ mapped: model() }))
    const { path, output } = object()
    await register(served, path)
    const { status, body } = await served.request("models/mapped/infer", {
      inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [1, length], parameters: inRegion(0, length) }],
      outputs: [{ name: "OUTPUT0", parameters: inRegion(length, length - 1) }],
    })
    expect([status, body.error]).toEqual([
      400,
      `shared memory size specified with the request for output 'OUTPUT0' (${length - 1} bytes) should be at least ${length} bytes to hold the results`,
    ])
    expect(output().every((value) => value === 0)).toBe(true)
  })

  it("that shrinks fails its requests, and the process goes on", async () => {
    const served = await serve(await write({ mapped: model() }))
    const { path, input } = object()
    await register(served, path)
    truncateSync(path, 100)
    const { status, body } = await infer(served, "mapped")
    expect([status, body.error]).toEqual([
      400,
      "Unable to read input 'INPUT0' from shared memory region: 'r', the object was truncated to 100 bytes",
    ])
    writeFileSync(path, Buffer.concat([input, Buffer.alloc(length)]))
    expect((await infer(served, "mapped")).body.parameters).toEqual({ mapped: true })
  })

  it("that is unregistered stays usable for requests that already have it", async () => {
    const batching = "dynamic_batching { preferred_batch_size: 2 max_queue_delay_microseconds: 60000000 }"
    const served = await serve(await write({ mapped: model(batching) }))
    const { path, input, output } = object()
    await register(served, path)
    const waiting = infer(served, "mapped")
    await expect
      .poll(async () => (await served.metrics()).match(/nv_inference_pending_request_count.*"mapped".* 1$/m))
      .toBeTruthy()
    expect((await served.request("systemsharedmemory/region/r/unregister", {})).status).toBe(200)
    const data = [...input]
    const other = served.infer("mapped", [{ name: "INPUT0", datatype: "UINT8", shape: [1, length], data }])
    expect([(await waiting).status, (await other).status]).toEqual([200, 200])
    expect(output().equals(input.map((value) => value + 1))).toBe(true)
  })
})
