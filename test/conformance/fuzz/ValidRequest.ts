/** Valid requests: any model, any shape that it takes, values from the whole range of their datatype. */
import type { Element, InferRequest, Output, Parameter, Parameters, Tensor } from "../InferRequest.ts"
import { type Contract, contracts, type Spec } from "./Contract.ts"
import type { Random } from "./Random.ts"

export const validRequest = (random: Random): InferRequest => {
  // Models with an input alone are many and much alike.
  const contract = random.chance(0.5)
    ? random.pick(contracts.filter(({ inputs }) => inputs.length > 1))
    : random.pick(contracts)
  const rows = contract.maxBatchSize > 0 ? [1 + random.below(contract.maxBatchSize)] : []
  const symbols = new Map<string, number>()
  const inputs = contract.inputs
    .filter(({ optional }) => optional !== true || random.chance(0.7))
    .map((spec) => input(random, spec, rows, symbols))
  return {
    model: contract.name,
    ...(random.chance(0.3) ? { version: "1" } : {}),
    ...(random.chance(0.5) ? { id: random.pick(["1", "a b", "größe", "\u{1f419}", '"\\']) } : {}),
    ...(random.chance(0.3) ? { parameters: parameters(random) } : {}),
    inputs: random.chance(0.2) ? inputs.toReversed() : inputs,
    ...(random.chance(0.4) ? { outputs: outputs(random, contract) } : {}),
  }
}

const input = (
  random: Random,
  { name, datatype, dims }: Spec,
  rows: ReadonlyArray<number>,
  symbols: Map<string, number>,
): Tensor => {
  const own = dims.map((dim) => {
    if (typeof dim === "number") return dim
    const extent = symbols.get(dim) ?? random.below(5)
    symbols.set(dim, extent)
    return extent
  })
  const shape = [...rows, ...own]
  const count = shape.reduce((product, extent) => product * extent, 1)
  const text = datatype !== "BYTES" || random.chance(0.8)
  return {
    name,
    datatype,
    shape,
    elements: Array.from({ length: count }, () => (text ? element(random, datatype) : random.bytes(random.below(9)))),
  }
}

export const element = (random: Random, datatype: string): Element => {
  if (datatype === "BYTES")
    return random.pick(["", "a", "text", "größer", "\u{1f419}", "\u0000", '"', "\\u0000", "\ufeffx"])
  if (datatype === "BOOL") return random.chance(0.5)
  const bits = Number(/[0-9]+$/.exec(datatype)?.[0])
  if (/^U?INT/.test(datatype)) {
    const any = random.chance(0.3)
      ? random.pick([0n, 1n, -1n, 2n ** BigInt(bits - 1), 2n ** BigInt(bits - 1) - 1n])
      : (BigInt(random.bits()) << 32n) | BigInt(random.bits())
    const value = datatype.startsWith("U") ? BigInt.asUintN(bits, any) : BigInt.asIntN(bits, any)
    return bits === 64 ? value : Number(value)
  }
  if (random.chance(0.2)) return random.pick([0, -0, Number.NaN, Infinity, -Infinity])
  if (datatype === "FP64") return new DataView(random.bytes(8).buffer).getFloat64(0)
  const single = new DataView(random.bytes(4).buffer).getFloat32(0)
  return datatype === "FP32" ? single : random.below(1000) / 8
}

const parameters = (random: Random): Parameters => {
  const value = (): Parameter => random.pick<Parameter>([true, -5n, 2n ** 63n - 1n, 0.5, "text", ""])
  return {
    ...Object.fromEntries(["a", "b", "__proto__"].filter(() => random.chance(0.5)).map((name) => [name, value()])),
    ...(random.chance(0.3) ? { sequence_id: random.pick<Parameter>([1n, "id"]), sequence_start: true } : {}),
    ...(random.chance(0.2) ? { priority: 1n, timeout: 1_000_000n } : {}),
  }
}

const outputs = (random: Random, contract: Contract): ReadonlyArray<Output> =>
  contract.outputs
    .filter(() => random.chance(0.7))
    .map(({ name, datatype }) => {
      const ranked = !["BYTES", "BOOL", "FP16", "BF16"].includes(datatype)
      return ranked && random.chance(0.2)
        ? { name, parameters: { classification: BigInt(random.below(6) - 1) } }
        : { name }
    })
