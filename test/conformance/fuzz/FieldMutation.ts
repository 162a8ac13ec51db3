/**
 * One change to a neutral request, of the kind that a caller gets wrong, and whether it is certain to make it invalid.
 */
import { bytesOf, datatypes } from "../Elements.ts"
import type { InferRequest, Parameters, Tensor } from "../InferRequest.ts"
import type { Random } from "./Random.ts"

export interface Mutated {
  readonly request: InferRequest
  /** Description of the mutation, for failure reports. */
  readonly description: string
  /** It cannot be valid any more; where this is false, it may still be. */
  readonly breaks: boolean
}

export const mutateField = (random: Random, request: InferRequest): Mutated => random.pick(mutations)(random, request)

type Mutation = (random: Random, request: InferRequest) => Mutated

/** A change of one of the inputs, as a mutation of the request. */
const ofInput =
  (description: string, change: (random: Random, input: Tensor) => Tensor | undefined, breaks = false): Mutation =>
  (random, request) => {
    const index = random.below(request.inputs.length)
    const input = request.inputs[index]
    const changed = input && change(random, input)
    if (changed === undefined) return { request, description: "nothing", breaks: false }
    return {
      request: { ...request, inputs: request.inputs.with(index, changed) },
      description: `${description} ${changed.name}`,
      breaks,
    }
  }

const withParameter = (request: InferRequest, name: string, value: Parameters[string]): InferRequest => ({
  ...request,
  parameters: { ...request.parameters, [name]: value },
})

/** A field with unchanged bytes. */
const frozen = (input: Tensor): Tensor => ({ ...input, elements: [], bytes: bytesOf(input) })

/** Beyond what an earlier change was to show, its elements would only take memory. */
const isAbsurd = ({ shape }: Tensor): boolean => shape.some((extent) => extent >= 1000)

/** With as many elements as the shape then needs. */
const resized = (input: Tensor, shape: ReadonlyArray<number | bigint>): Tensor => {
  const { elements } = input
  const length = shape.reduce((product: number, extent) => product * Number(extent), 1)
  if (elements.length === 0) return { ...input, shape }
  return { ...input, shape, elements: Array.from({ length }, (_, index) => elements[index % elements.length] ?? 0) }
}

const absurd = [0, 1, 2, 3, 1000, 2 ** 31, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 62n, 2n ** 63n - 1n]

const mutations: ReadonlyArray<Mutation> = [
  (_, request) => ({ request, description: "nothing", breaks: false }),
  (random, request) => {
    const index = random.below(request.inputs.length)
    const name = request.inputs[index]?.name ?? ""
    const inputs = request.inputs.toSpliced(index, 1)
    return {
      request: { ...request, inputs },
      description: `no ${name}`,
      breaks: name !== "" && !(request.model === "shapes" && name === "B"),
    }
  },
  (random, request) => {
    if (request.inputs.length === 0) return { request, description: "nothing", breaks: false }
    const repeated = random.pick(request.inputs)
    const inputs = request.inputs.toSpliced(random.below(request.inputs.length + 1), 0, repeated)
    return { request: { ...request, inputs }, description: `${repeated.name} twice`, breaks: true }
  },
  ofInput(
    "renamed to",
    (random, input) => ({
      ...input,
      name: random.pick(["", "x", `${input.name} `, input.name.toLowerCase() + "_", "__proto__", "\u{1f419}"]),
    }),
    true,
  ),
  ofInput(
    "datatype of",
    (random, input) => {
      const datatype = random.pick([...datatypes, "", "STRING", "fp32", "FP8", "constructor"])
      return datatype === input.datatype ? undefined : { ...frozen(input), datatype }
    },
    true,
  ),
  ofInput(
    "one dim more of",
    (random, input) => ({ ...frozen(input), shape: input.shape.toSpliced(random.below(input.shape.length + 1), 0, 1) }),
    true,
  ),
  ofInput(
    "one dim less of",
    (random, input) =>
      input.shape.length === 0
        ? undefined
        : { ...frozen(input), shape: input.shape.toSpliced(random.below(input.shape.length), 1) },
    true,
  ),
  ofInput("a dim of", (random, input) => {
    if (input.shape.length === 0) return undefined
    const axis = random.below(input.shape.length)
    if (isAbsurd(input)) return undefined
    const extent = Number(input.shape[axis] ?? 0)
    return { ...input, shape: input.shape.with(axis, extent + random.pick([1, extent > 0 ? -1 : 1])) }
  }),
  ofInput("resized", (random, input) => {
    if (input.shape.length === 0) return undefined
    const axis = random.below(input.shape.length)
    if (isAbsurd(input)) return undefined
    return resized(input, input.shape.with(axis, Math.max(0, Number(input.shape[axis] ?? 0) + random.pick([1, -1]))))
  }),
  (random, request) => {
    const rows = random.pick([0, 1, 4, 5, 8, 9])
    const inputs = request.inputs.map((input) =>
      input.shape.length === 0 || isAbsurd(input) ? input : resized(input, input.shape.with(0, rows)),
    )
    return { request: { ...request, inputs }, description: `${rows} rows`, breaks: false }
  },
  ofInput("an absurd dim of", (random, input) => {
    if (input.shape.length === 0) return undefined
    return { ...frozen(input), shape: input.shape.with(random.below(input.shape.length), random.pick(absurd)) }
  }),
  ofInput(
    "an element more of",
    (random, input) => ({
      ...input,
      elements: [...input.elements, input.elements[random.below(Math.max(1, input.elements.length))] ?? 0],
    }),
    true,
  ),
  ofInput(
    "an element less of",
    (_, input) => (input.elements.length === 0 ? undefined : { ...input, elements: input.elements.slice(1) }),
    true,
  ),
  ofInput(
    "bytes cut from",
    (random, input) => {
      const bytes = bytesOf(input)
      return bytes.length === 0 ? undefined : { ...frozen(input), bytes: bytes.subarray(0, random.below(bytes.length)) }
    },
    true,
  ),
  ofInput("bytes behind", (random, input) => ({
    ...frozen(input),
    bytes: Buffer.concat([bytesOf(input), random.bytes(1 + random.below(8))]),
  })),
  ofInput("other bytes of", (random, input) => ({ ...frozen(input), bytes: random.bytes(bytesOf(input).length) })),
  ofInput("NaN in", (_, input) =>
    input.datatype.startsWith("FP") ? { ...input, elements: input.elements.map(() => Number.NaN) } : undefined,
  ),
  (random, request) => {
    const model = random.pick([
      "",
      "no",
      `${request.model} `,
      request.model.toUpperCase(),
      "..",
      "a/b",
      "%00",
      "__proto__",
    ])
    return { request: { ...request, model }, description: `model ${JSON.stringify(model)}`, breaks: true }
  },
  (random, request) => {
    const version = random.pick(["0", "2", "01", "99999999999999999999", "x", "-1", "1.0", " 1", "1e0"])
    return { request: { ...request, version }, description: `version ${version}`, breaks: version !== "01" }
  },
  (random, request) => {
    const name = random.pick(["", "Z", "output0", "__proto__"])
    return {
      request: { ...request, outputs: [...(request.outputs ?? []), { name }] },
      description: `output ${JSON.stringify(name)}`,
      breaks: true,
    }
  },
  (_, request) => {
    const [first] = request.outputs ?? []
    if (first === undefined) return { request, description: "nothing", breaks: false }
    return {
      request: { ...request, outputs: [...(request.outputs ?? []), first] },
      description: "an output twice",
      breaks: true,
    }
  },
  (random, request) => {
    const classification = random.pick([0n, -1n, 1n, 2n ** 62n, "1", true, 0.5] as const)
    const outputs = (request.outputs ?? []).map(({ name }) => ({ name, parameters: { classification } }))
    return {
      request: { ...request, outputs },
      description: `${outputs.length} outputs with classification ${classification}`,
      breaks: false,
    }
  },
  (random, request) => {
    const name = random.pick(["triton_", "triton_x", "triton_final_response"])
    return { request: withParameter(request, name, true), description: `parameter ${name}`, breaks: true }
  },
  (random, request) => {
    const name = random.pick([
      "priority",
      "timeout",
      "sequence_start",
      "sequence_end",
      "sequence_id",
      "binary_data_output",
      "headers",
    ])
    const value = random.pick<Parameters[string]>([true, 1n, -1n, 0.5, "x", "x".repeat(129)])
    return {
      request: withParameter(request, name, value),
      description: `parameter ${name} ${String(value)}`,
      breaks: false,
    }
  },
]
