/**
 * The expected outputs of a request to `generate`, a flat object whose keys are inputs of the model or parameters:
 * https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_generate.md
 */
import { bytesOf } from "../Elements.ts"
import type { Tensor } from "../InferRequest.ts"
import { checkKnown, dataOf, membersOf, stringOf } from "./HttpOracle.ts"
import type { JsonTree } from "./JsonTree.ts"
import { contractOf, deserved, type ReceivedTensor, refuse } from "./Verdict.ts"

/** @throws Refusal where it deserves no outputs */
export const outputsOf = (tree: JsonTree, model: string, version: string): ReadonlyArray<Tensor> => {
  const contract = contractOf(model, version)
  const inputs: Array<ReceivedTensor> = []
  const take = (key: string, value: JsonTree): void => {
    const spec = contract.inputs.find(({ name }) => name === key)
    if (spec === undefined) return checkParameter(key, value)
    const dims = spec.dims.map((dim) => (typeof dim === "number" ? dim : -1))
    const shape = shapeOf(value, contract.maxBatchSize > 0 ? [-1, ...dims] : dims)
    const head = { name: key, datatype: spec.datatype, shape: shape.map(BigInt) }
    const array: JsonTree = value.kind === "array" ? value : { kind: "array", elements: [value] }
    inputs.push({ ...head, bytes: bytesOf({ ...head, elements: dataOf(array, head) }) })
  }
  for (const [key, value] of membersOf(tree)) {
    if (key === "id") stringOf(value)
    else if (key !== "parameters") take(key, value)
    else for (const [name, nested] of membersOf(value)) take(name, nested)
  }
  return deserved({ model, version, inputs, outputs: [] }, true)
}

const checkParameter = (name: string, value: JsonTree): void => {
  if (value.kind === "object" || value.kind === "array" || (value.kind === "word" && value.text === "null"))
    refuse(name)
  if (value.kind === "number" && !Number.isFinite(Number(value.text))) refuse("too big, or NaN")
  checkKnown(name, value)
}

/** Of arrays in arrays the innermost axes; of others, what the last dim that varies has beside the fixed ones. */
const shapeOf = (value: JsonTree, dims: ReadonlyArray<number>): ReadonlyArray<number> => {
  const extents = extentsOf(value)
  if (extents.length > 1) {
    if (extents.length > dims.length) return refuse("rank")
    const shape = [...Array.from({ length: dims.length - extents.length }, () => 1), ...extents]
    return shape.every((extent, axis) => dims[axis] === -1 || dims[axis] === extent) ? shape : refuse("shape")
  }
  const fixed = dims.filter((dim) => dim !== -1).reduce((product, dim) => product * dim, 1)
  const rest = (extents[0] ?? 1) / fixed
  const varies = dims.lastIndexOf(-1)
  if (!Number.isInteger(rest) || (varies < 0 && rest !== 1)) return refuse("elements")
  return dims.map((dim, axis) => (axis === varies ? rest : Math.abs(dim)))
}

const extentsOf = (tree: JsonTree): ReadonlyArray<number> => {
  if (tree.kind !== "array") return []
  const [first = [], ...others] = tree.elements.map(extentsOf)
  if (others.some((other) => other.join() !== first.join())) refuse("uneven")
  return [tree.elements.length, ...first]
}
