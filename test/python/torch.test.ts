/** Tensors of models in Python that torch reads and writes by DLPack. */
import { describe, expect, it, onTestFinished, vi } from "vitest"
import { torchPython } from "../fixtures/torchPython.ts"
import { serve, write } from "./PythonRepository.ts"

const tensor = (side: string, name: string, type: string, dims: string) =>
  `${side} { name: "${name}" data_type: TYPE_${type} dims: ${dims} }`

const config = [
  tensor("input", "NUMBERS", "FP32", "[ -1, 2 ]"),
  tensor("input", "SHORT", "BF16", "-1"),
  tensor("output", "DOUBLED", "FP32", "[ -1, 2 ]"),
  tensor("output", "NEGATED", "BF16", "-1"),
  tensor("output", "SUM", "INT64", "2"),
].join("\n")

describe.skipIf(torchPython === undefined)("tensors of torch", () => {
  it.each([2, 100_000])("go both ways without copies, %i rows", async (rows) => {
    vi.stubEnv("NEREID_PYTHON", torchPython)
    onTestFinished(() => void vi.unstubAllEnvs())
    const { rpc } = await serve(await write({ torch_tensors: { config } }))
    const numbers = Float32Array.from({ length: rows * 2 }, (_, index) => index % 100)
    const short = Uint16Array.from({ length: rows }, (_, index) => (index % 2 === 0 ? 0x3f80 : 0xc000))
    const { rawOutputContents } = await rpc.modelInfer({
      modelName: "torch_tensors",
      inputs: [
        { name: "NUMBERS", datatype: "FP32", shape: [BigInt(rows), 2n] },
        { name: "SHORT", datatype: "BF16", shape: [BigInt(rows)] },
      ],
      rawInputContents: [new Uint8Array(numbers.buffer), new Uint8Array(short.buffer)],
    })
    const [doubled, negated, sums] = rawOutputContents.map((bytes) => bytes.slice().buffer)
    expect(new Float32Array(doubled ?? new ArrayBuffer())).toEqual(numbers.map((value) => value * 2))
    // The sign is the highest bit.
    expect(new Uint16Array(negated ?? new ArrayBuffer())).toEqual(short.map((bits) => bits ^ 0x8000))
    const sum = (column: number) =>
      numbers.reduce((sum, value, index) => sum + (index % 2 === column ? 2 * value : 0), 0)
    expect([...new BigInt64Array(sums ?? new ArrayBuffer())]).toEqual([BigInt(sum(0)), BigInt(sum(1))])
  })
})
