/** Large outputs in memory that is used again: no response shows bytes of another one. */
import { describe, expect, it } from "vitest"
import * as BodyPool from "../../packages/python/src/wire/BodyPool.ts"
import { python } from "../fixtures/python.ts"
import { serve, write } from "./PythonRepository.ts"

const length = 80_000
const tensors = ["input", "output"]
  .map((side) => `${side} { name: "${side.toUpperCase()}0" data_type: TYPE_UINT8 dims: ${length} }`)
  .join("\n")

const model = (more: string) => ({ file: "triton_identity", config: `max_batch_size: 4 ${tensors} ${more}` })

/** The bytes of the output over HTTP, whose input has this value everywhere. */
const overHttp = async (address: string, name: string, value: number): Promise<Buffer> => {
  const parameters = { binary_data_size: length }
  const document = JSON.stringify({
    inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [1, length], parameters }],
    parameters: { binary_data_output: true },
  })
  const response = await fetch(`${address}/v2/models/${name}/infer`, {
    method: "POST",
    headers: { "inference-header-content-length": String(document.length) },
    body: Buffer.concat([Buffer.from(document), Buffer.alloc(length, value)]),
  })
  const body = Buffer.from(await response.arrayBuffer())
  return body.subarray(Number(response.headers.get("inference-header-content-length")))
}

describe.skipIf(python === undefined)("large outputs", () => {
  it("are those of their requests, over HTTP, gRPC, streams and a response cache, under many callers", async () => {
    const fixture = await write({
      plain: model("dynamic_batching {}"),
      cached: model("response_cache { enable: true }"),
    })
    const { server, rpc, stream } = await serve(fixture)
    const address = `http://127.0.0.1:${server.http.port}`
    const request = (modelName: string, value: number) => ({
      modelName,
      inputs: [{ name: "INPUT0", datatype: "UINT8", shape: [1n, BigInt(length)] }],
      rawInputContents: [new Uint8Array(length).fill(value)],
    })
    const calls: ReadonlyArray<(name: string, value: number) => Promise<Uint8Array | undefined>> = [
      (name, value) => overHttp(address, name, value),
      async (name, value) => (await rpc.modelInfer(request(name, value))).rawOutputContents[0],
      async (name, value) => (await stream(request(name, value)))[0]?.inferResponse?.rawOutputContents[0],
    ]
    let wrong = 0
    const caller = async (number: number) => {
      for (let round = 0; round < 30; round++) {
        const value = (number * 31 + round) % 251
        const name = round % 3 === 0 ? "cached" : "plain"
        const bytes = await calls[(number + round) % calls.length]?.(name, value)
        if (bytes?.length !== length || !bytes.every((byte) => byte === value)) wrong += 1
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, number) => caller(number)))
    expect(wrong).toBe(0)
    // The transports have released them.
    expect(BodyPool.shared.freeBytes).toBeGreaterThan(length)
  })
})
