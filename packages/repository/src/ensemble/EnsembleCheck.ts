/**
 * Checks an ensemble against the models of its steps: whether they exist, their versions, their batch sizes, and the
 * tensors between them. The messages are Triton's. The check runs again whenever one of the models changes.
 */
import { Result } from "effect"
import type { EnsembleDefinition, EnsembleStep } from "@nereid/core/internal/ensemble/EnsembleGraph"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type Dim, isDynamic, type TensorSpec, wireDims } from "@nereid/core/internal/tensor/TensorSpec"
import type { OtherModels } from "../plan/OtherModels.ts"

/** The model of each step, in their order; or the first problem. */
export const resolve = (
  ensemble: EnsembleDefinition,
  otherModels: Pick<OtherModels, "versions" | "isKnown" | "loadError">,
): Result.Result<ReadonlyArray<RunningModel>, string> => {
  const { name, steps } = ensemble
  const versions = new Map(steps.map(({ model }) => [model, otherModels.versions(model)]))
  const missing = [...versions].flatMap(([model, versions]) => (versions.length === 0 ? [model] : []))
  const unknown = missing.filter((model) => !otherModels.isKnown(model))
  if (unknown.length > 0) {
    return Result.fail(`ensemble ${name} contains models that are not available or ambiguous: ${unknown.join(", ")}`)
  }
  const [unloaded] = missing
  if (unloaded !== undefined) {
    const error = otherModels.loadError(unloaded)
    const detail = error === undefined ? "" : `. Model '${unloaded}' loading failed with error: ${error}`
    return Result.fail(`ensemble '${name}' depends on '${unloaded}' which has no loaded version${detail}`)
  }
  const models: Array<RunningModel> = []
  for (const { model, version } of steps) {
    const all = versions.get(model) ?? []
    const found = version === "" ? all.at(-1) : all.find((other) => other.description.version === version)
    if (found === undefined) {
      return Result.fail(`ensemble '${name}' depends on '${model}' whose required version ${version} is not loaded.`)
    }
    models.push(found)
  }
  const found = problem(ensemble, models)
  return found === undefined ? Result.succeed(models) : Result.fail(found)
}

/** The spec of a tensor of the ensemble, and the model that it comes from. */
interface KnownTensor {
  readonly spec: TensorSpec
  readonly model: string
  readonly isBatched: boolean
}

const problem = (ensemble: EnsembleDefinition, models: ReadonlyArray<RunningModel>): string | undefined => {
  const { name, inner, maxBatchSize, steps } = ensemble
  const tensors = new Map<string, KnownTensor>()
  for (const spec of [...inner.inputs, ...inner.outputs]) {
    tensors.set(spec.name, { spec, model: name, isBatched: maxBatchSize > 0 })
  }
  for (const [index, step] of steps.entries()) {
    const model = models[index]
    if (model === undefined) continue
    // A model without batching may take the whole batch as one tensor; the shapes decide.
    const isBatched = model.description.maxBatchSize > 0
    if (isBatched && model.description.maxBatchSize < maxBatchSize) {
      const limitNote = `which only allows maximum batch size to be ${model.description.maxBatchSize}`
      return `ensemble ${name} allows maximum batch size ${maxBatchSize}, but it contains model ${model.description.name} ${limitNote}`
    }
    const found = mappingProblem(name, step, model, tensors)
    if (found !== undefined) return found
  }
  return undefined
}

const mappingProblem = (
  ensemble: string,
  { inputs, outputs }: EnsembleStep,
  { description: { name, signature, maxBatchSize } }: RunningModel,
  tensors: Map<string, KnownTensor>,
): string | undefined => {
  const location = `in ensemble ${ensemble}, `
  /** The spec of this side must agree with the earlier ones. */
  const disagreement = (tensor: string, spec: TensorSpec): string | undefined => {
    const current: KnownTensor = { spec, model: name, isBatched: maxBatchSize > 0 }
    const known = tensors.get(tensor)
    if (known === undefined) tensors.set(tensor, current)
    return known && inconsistency(`${location}ensemble tensor ${tensor}: `, known, current)
  }
  for (const [input, tensor] of inputs) {
    if (signature.inputs.some((spec) => spec.name === input)) continue
    return `${location}ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${name}`
  }
  for (const spec of signature.inputs) {
    const tensor = inputs.get(spec.name)
    if (tensor === undefined) {
      if (spec.optional) continue
      return `${location}input ${spec.name} in model ${name} is not mapped to any ensemble tensors`
    }
    const found = disagreement(tensor, spec)
    if (found !== undefined) return found
  }
  for (const [output, tensor] of outputs) {
    const spec = signature.outputs.find((spec) => spec.name === output)
    if (spec === undefined) {
      return `${location}ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${name}`
    }
    const found = disagreement(tensor, spec)
    if (found !== undefined) return found
  }
  return undefined
}

const inconsistency = (location: string, one: KnownTensor, other: KnownTensor): string | undefined => {
  const between = (kind: string, describe: (known: KnownTensor) => string) =>
    `${location}inconsistent ${kind}: ${describe(one)} is inferred from model ${one.model} while ${describe(other)} is inferred from model ${other.model}`
  if (one.spec.datatype !== other.spec.datatype) return between("data type", ({ spec }) => typeName(spec))
  // Compares dims as declared, or with the batch dimension of the batching side: [-1, 16] without batching fits [16]
  // with it.
  if (fit(one.spec.dims, other.spec.dims) || fit(full(one), full(other))) return undefined
  return between("shape", (known) => `[${wireDims(full(known))}]`)
}

const typeName = ({ datatype }: TensorSpec): string => `TYPE_${datatype === "BYTES" ? "STRING" : datatype}`

const full = ({ spec, isBatched }: KnownTensor): ReadonlyArray<Dim> => (isBatched ? [-1, ...spec.dims] : spec.dims)

/** Every extent is equal, or variable on one side; then requests decide. */
const fit = (one: ReadonlyArray<Dim>, other: ReadonlyArray<Dim>): boolean =>
  one.length === other.length &&
  one.every((dim, axis) => {
    const against = other[axis] ?? -1
    return isDynamic(dim) || isDynamic(against) || dim === against
  })
