/**
 * Validates a wire request against a model's signature. A valid request has every required input with the right
 * datatype, shape and byte length, so later stages do not check again.
 *
 * Error messages are Triton's, because clients match them.
 */
import { Result } from "effect"
import { classify, type Slices } from "./Classification.ts"
import { byteWidth } from "../tensor/DataType.ts"
import { InvalidRequest } from "../error/InferenceError.ts"
import * as KnownParameters from "./KnownParameters.ts"
import { errorPrefix, type Request, type Response } from "../request/Request.ts"
import * as SessionParameters from "../request/SessionParameters.ts"
import type { ModelInterface } from "./ModelInterface.ts"
import * as SharedBytes from "../tensor/SharedBytes.ts"
import * as SharedTensor from "../tensor/SharedTensor.ts"
import { matches, type TensorSpec, wireDims } from "../tensor/TensorSpec.ts"
import { symbolMismatch } from "../tensor/SymbolMismatch.ts"
import { TextTensor } from "../tensor/TextTensor.ts"
import { elementCount, TypedTensor } from "../tensor/TypedTensor.ts"
import type { WireRequest, WireResponse, WireTensor } from "./WireRequest.ts"
import { WireText } from "./WireText.ts"

export interface Validated {
  readonly request: Request
  /** The requested outputs, in the requested order. */
  readonly outputs: ReadonlyArray<ValidatedOutput>
  /** Whether classes of an output are requested, which `classifiedResponse` makes. */
  readonly isClassified: boolean
}

interface ValidatedOutput {
  /** In the signature's outputs. */
  readonly position: number
  /** As in RequestedOutput. */
  readonly classification: number | undefined
}

const batchNote =
  " NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each " +
  "input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting " +
  "max_batch_size to zero. See the model configuration docs for more info on max_batch_size."

/**
 * Validates a request. `deadline` is in milliseconds of the clock; undefined if the caller set none. `connection`
 * identifies the connection that it has come by.
 */
export const validate = (
  model: ModelInterface,
  wire: WireRequest,
  deadline: number | undefined,
  connection?: object,
): Result.Result<Validated, InvalidRequest> => {
  const refuse = (text: string) => Result.fail(new InvalidRequest({ message: errorPrefix(wire) + text }))
  const specs = model.signature.inputs
  const inputs: Array<TypedTensor | undefined> = specs.map(() => undefined)

  for (const tensor of wire.inputs) {
    const index = specs.findIndex((spec) => spec.name === tensor.name)
    const spec = specs[index]
    if (spec === undefined) return refuse(`unexpected inference input '${tensor.name}' for model '${model.name}'`)
    if (inputs[index] !== undefined) return refuse(`input '${tensor.name}' already exists in request`)
    if (tensor.datatype !== spec.datatype) {
      const expected = `but model '${model.name}' expects '${spec.datatype}'`
      return refuse(`inference input '${tensor.name}' data-type is '${tensor.datatype}', ${expected}`)
    }
    const problem = shapeProblem(model, spec, tensor)
    if (problem !== undefined) return refuse(problem)
    inputs[index] =
      tensor.shared === undefined
        ? new TypedTensor(spec.datatype, tensor.shape, tensor.bytes)
        : SharedTensor.make(spec.datatype, tensor.shape, tensor.shared)
  }

  // A request that only ends its sequence is not executed.
  const hasSequences = model.sequencing !== undefined || model.requiredSequence !== undefined
  const isClose = hasSequences && SessionParameters.isClose(wire.parameters)
  const missing = isClose ? undefined : missingInputs(model, wire, inputs)
  if (missing !== undefined) return refuse(missing)
  const disagreement = symbolMismatch(model.name, specs, inputs)
  if (disagreement !== undefined) return refuse(disagreement)

  let rows = 1
  if (model.maxBatchSize > 0) {
    rows = inputs.find((tensor) => tensor !== undefined)?.shape[0] ?? 1
    const other = inputs.findIndex((tensor) => tensor !== undefined && tensor.shape[0] !== rows)
    if (other >= 0) {
      return refuse(`input '${specs[other]?.name}' batch size does not match other inputs for '${model.name}'`)
    }
    if (rows < 1) return refuse(`inference request batch-size must be >= 1 for '${model.name}'`)
    if (rows > model.maxBatchSize) {
      return refuse(`inference request batch-size must be <= ${model.maxBatchSize} for '${model.name}'`)
    }
  }

  // Checked last, because a shape with invalid rows does not determine the byte length.
  for (let index = 0; index < specs.length; index++) {
    const tensor = inputs[index]
    const problem = tensor && bytesProblem(wire, model.name, specs[index]?.name ?? "", tensor)
    if (problem !== undefined) return Result.fail(new InvalidRequest({ message: problem }))
  }

  const outputs: Array<ValidatedOutput> = []
  let isClassified = false
  for (const { name, classification } of wire.outputs) {
    const position = model.signature.outputs.findIndex((spec) => spec.name === name)
    if (position < 0) return refuse(`unexpected inference output '${name}' for model '${model.name}'`)
    if (outputs.some((other) => other.position === position))
      return refuse(`output '${name}' already exists in request`)
    outputs.push({ position, classification })
    isClassified ||= classification !== undefined
  }
  return Result.succeed({
    request: {
      id: wire.id,
      inputs,
      rows,
      parameters: KnownParameters.forModel(wire.parameters),
      deadline,
      connection,
      memory: wire.memory,
      requestedOutputs: wire.outputs.length === 0 ? noOutputs : wire.outputs.map(({ name }) => name),
      trace: wire.trace,
    },
    outputs: outputs.length > 0 ? outputs : everything(model.signature.outputs.length),
    isClassified,
  })
}

/** The response for a codec to write, of a request that is not classified. */
export const wireResponse = (model: ModelInterface, validated: Validated, response: Response): WireResponse => {
  const { outputs } = validated
  const [first] = outputs
  const only = outputs.length === 1 && first !== undefined ? output(model, response, first) : undefined
  // Has its final length from the start: an array that grows reserves room for 16 more elements.
  if (only !== undefined) return responseOf(model, validated, response, [only])
  const tensors: Array<WireTensor> = []
  for (const one of outputs) {
    const tensor = output(model, response, one)
    if (tensor !== undefined) tensors.push(tensor)
  }
  return responseOf(model, validated, response, tensors)
}

/** A requested output; undefined if the model has left it out. */
const output = (model: ModelInterface, response: Response, { position }: ValidatedOutput): WireTensor | undefined => {
  const spec = model.signature.outputs[position]
  const tensor = response.outputs[position]
  return spec !== undefined && tensor !== undefined ? wireTensor(spec, tensor) : undefined
}

/** The same for a classified request. Fails if an output has no classes. */
export function* classifiedResponse(
  model: ModelInterface,
  validated: Validated,
  response: Response,
): Slices<Result.Result<WireResponse, InvalidRequest>> {
  const outputs: Array<WireTensor> = []
  for (const { position, classification } of validated.outputs) {
    const spec = model.signature.outputs[position]
    let tensor = response.outputs[position]
    if (spec === undefined || tensor === undefined) continue
    if (classification !== undefined) {
      const options = { batched: model.maxBatchSize > 0, labels: spec.labels }
      const classes = yield* classify(tensor, classification, options)
      if (Result.isFailure(classes)) return Result.fail(classes.failure)
      tensor = classes.success
    }
    outputs.push(wireTensor(spec, tensor))
  }
  return Result.succeed(responseOf(model, validated, response, outputs))
}

const wireTensor = ({ name }: TensorSpec, tensor: TypedTensor): WireTensor => {
  if (tensor instanceof TextTensor) return new WireText(name, tensor.shape, tensor.text)
  const { datatype, shape } = tensor
  const shared = SharedBytes.of(tensor)
  return shared === undefined
    ? { name, datatype, shape, bytes: tensor.bytes }
    : { name, datatype, shape, bytes: noBytes, shared }
}

const noBytes = new Uint8Array()

const responseOf = (
  { name: modelName, version: modelVersion }: ModelInterface,
  { request: { id } }: Validated,
  { parameters, release }: Response,
  outputs: ReadonlyArray<WireTensor>,
): WireResponse =>
  release === undefined
    ? { modelName, modelVersion, id, parameters, outputs }
    : { modelName, modelVersion, id, parameters, outputs, release }

const noOutputs: ReadonlyArray<string> = []

/** All outputs of a signature with `count` outputs; the array is shared by its requests. */
const everything = (count: number): ReadonlyArray<ValidatedOutput> =>
  (all[count] ??= Array.from({ length: count }, (_, position) => ({ position, classification: undefined })))

const all: Array<ReadonlyArray<ValidatedOutput>> = []

const shapeProblem = (model: ModelInterface, spec: TensorSpec, { shape, name }: WireTensor): string | undefined => {
  const batching = model.maxBatchSize > 0
  if (batching && shape.length === 0) {
    return `input '${name}' has no shape but model requires batch dimension for '${model.name}'`
  }
  if (matches(spec.dims, shape, batching ? 1 : 0) && shape.every((extent) => extent >= 0)) return undefined
  const expected = batching ? [-1, ...wireDims(spec.dims)] : wireDims(spec.dims)
  return (
    `unexpected shape for input '${name}' for model '${model.name}'. ` +
    `Expected [${expected}], got [${shape}].${batching ? batchNote : ""}`
  )
}

const list = (names: ReadonlyArray<string>) => `[${names.map((name) => `'${name}'`).join(",")}]`

const missingInputs = (
  model: ModelInterface,
  wire: WireRequest,
  inputs: ReadonlyArray<TypedTensor | undefined>,
): string | undefined => {
  const specs = model.signature.inputs
  const isMissing = (spec: TensorSpec, index: number) => !spec.optional && inputs[index] === undefined
  if (!specs.some(isMissing)) return undefined
  const missing = specs.filter(isMissing)
  const required = specs.filter((spec) => !spec.optional).length
  const got = wire.inputs.length
  const counts =
    required === specs.length
      ? `expected ${specs.length} inputs but got ${got} inputs`
      : `expected number of inputs between ${required} and ${specs.length} but got ${got} inputs`
  return (
    `${counts} for model '${model.name}'. Got input(s) ${list(wire.inputs.map(({ name }) => name))}, but missing ` +
    `required input(s) ${list(missing.map(({ name }) => name))}. Please provide all required input(s).`
  )
}

const maxInt64 = 2n ** 63n - 1n

const bytesProblem = (wire: WireRequest, model: string, name: string, tensor: TypedTensor): string | undefined => {
  const width = byteWidth(tensor.datatype)
  // A product that is this number is exact: rounding begins far above it.
  const length = SharedBytes.lengthOf(tensor)
  if (width !== undefined && elementCount(tensor.shape) * width === length) return undefined
  let count = 1n
  for (const extent of tensor.shape) count *= BigInt(extent)
  if (count > maxInt64) {
    return (
      `${errorPrefix(wire)}input '${name}' for model '${model}' has shape [${tensor.shape}], which causes total ` +
      "element count to exceed maximum size of 9223372036854775807"
    )
  }
  if (width === undefined) return elementsProblem(wire, model, name, tensor.bytes, count)
  const expected = count * BigInt(width)
  if (expected > maxInt64) return `${errorPrefix(wire)}byte size overflow for input '${name}' for model '${model}'`
  if (expected === BigInt(length)) return undefined
  const sizes = `Expected ${expected}, got ${length}`
  return `${errorPrefix(wire)}input byte size mismatch for input '${name}' for model '${model}'. ${sizes}`
}

/** The first problem that Triton would find: the checks and their order are those of its core. */
const elementsProblem = (
  wire: WireRequest,
  model: string,
  name: string,
  bytes: Uint8Array,
  expected: bigint,
): string | undefined => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const input = `inference input '${name}'`
  const refused = (problem: string, rest: string) =>
    `${errorPrefix(wire)}${problem} for ${input} for model '${model}', ${rest}`
  const expectedCount = Number(expected)
  let elements = 0
  let offset = 0
  let start = 0
  while (offset < bytes.length) {
    const left = bytes.length - offset
    if (left < 4) {
      const advice = "Please make sure the string length indicator is in one buffer."
      return refused(
        "incomplete string length indicator",
        `expecting 4 bytes but only ${left} bytes available. ${advice}`,
      )
    }
    elements += 1
    if (elements > expectedCount) {
      return refused(`unexpected number of string elements ${elements}`, `expecting ${expected}`)
    }
    start = offset + 4
    offset = start + view.getUint32(offset, true)
  }
  if (elements < expectedCount) return refused(`expected ${expected} string elements`, `got ${elements}`)
  if (offset === bytes.length) return undefined
  const available = `only ${bytes.length - start} bytes available`
  return `incomplete string data for ${input}, expecting string of length ${offset - start} but ${available}`
}
