/** A batch as seen by a handler of its joined tensors: values that all rows share, and the shapes before padding. */
import { Result } from "effect"
import * as Batch from "../batch/Batch.ts"
import { withoutBatch } from "../model/BatchedTensors.ts"
import type { Definition, Sample } from "../model/Definition.ts"
import type { Fields, SymbolsOf } from "../model/Field.ts"
import type { BatchScope, HandledBatch } from "./HandledBatch.ts"
import type { Declared } from "../model/Declared.ts"
import type { HandledRequest } from "./RequestContext.ts"
import type { Run } from "../call/PromiseCall.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { slice, type TypedTensor } from "../tensor/TypedTensor.ts"

export interface JoinedBatch<I extends Fields, P extends Declared = undefined> extends HandledBatch<P> {
  /**
   * The value of an input that all rows share, as in samples; undefined if it was omitted. For inputs of `groupBy`.
   * @throws TypeError if rows differ
   */
  readonly value: <K extends keyof Sample<I> & string>(input: K) => Sample<I>[K]
  /** The extents of a symbolic dim, by row of the tensors, before ragged ones were padded. */
  readonly extents: (dim: SymbolsOf<I>) => ReadonlyArray<number>
}

/** The inputs of a model, one by one. */
export class JoinedInputs<I extends Fields> {
  readonly definition: Pick<Definition<I, Fields>, "name" | "inputs" | "signature">
  /** Codecs of the inputs used so far. */
  readonly #codecs = new Map<string, SampleCodec.SampleCodec>()

  constructor(definition: JoinedInputs<I>["definition"]) {
    this.definition = definition
  }

  /** The value of a tensor of one row, without the batch dimension. */
  decode(spec: TensorSpec, tensor: TypedTensor | undefined): unknown {
    let codec = this.#codecs.get(spec.name)
    if (codec === undefined) {
      codec = SampleCodec.make(this.definition.inputs, [spec])
      this.#codecs.set(spec.name, codec)
    }
    const decoded = codec.decode([tensor])
    if (Result.isSuccess(decoded)) return decoded.success[spec.name]
    throw new TypeError(`Input '${spec.name}' of model '${this.definition.name}': ${decoded.failure.message}.`)
  }
}

/** `tensors` by position of the inputs, with their batch dimension. */
export class JoinedScope<I extends Fields, P extends Declared> implements JoinedBatch<I, P> {
  readonly #inputs: JoinedInputs<I>
  readonly #batch: Batch.Batch
  readonly #scope: BatchScope<P>
  readonly #tensors: ReadonlyArray<TypedTensor | undefined>

  constructor(
    inputs: JoinedInputs<I>,
    batch: Batch.Batch,
    scope: BatchScope<P>,
    tensors: ReadonlyArray<TypedTensor | undefined>,
  ) {
    this.#inputs = inputs
    this.#batch = batch
    this.#scope = scope
    this.#tensors = tensors
  }

  get requests(): ReadonlyArray<HandledRequest<P>> {
    return this.#scope.requests
  }

  get signal(): AbortSignal {
    return this.#scope.signal
  }

  get run(): Run {
    return this.#scope.run
  }

  // Functions and not methods, as in RequestScope.ts: a handler may take them apart.
  get value(): JoinedBatch<I>["value"] {
    return (input) => this.#value(input)
  }

  get extents(): JoinedBatch<I>["extents"] {
    return (dim) => this.#extents(dim)
  }

  #value<K extends keyof Sample<I> & string>(input: K): Sample<I>[K] {
    const { name, signature } = this.#inputs.definition
    const position = signature.inputs.findIndex((spec) => spec.name === input)
    const spec = signature.inputs[position]
    const tensor = this.#tensors[position]
    if (spec === undefined) throw new TypeError(`Model '${name}' has no input '${input}'.`)
    const row = tensor && slice(tensor, 0, 1)
    if (tensor !== undefined && row !== undefined && !repeats(tensor, row)) {
      throw new TypeError(`Input '${input}' of model '${name}' differs among the rows of the batch: see groupBy.`)
    }
    // Decoded by the Schema of this very field.
    return this.#inputs.decode(spec, row && withoutBatch(row)) as Sample<I>[K]
  }

  #extents(dim: string): ReadonlyArray<number> {
    const extents: Array<number> = []
    const { requests, joined = [] } = this.#batch
    for (const { inputs, rows } of requests) {
      const extent = this.#extent(dim, inputs.concat(joined))
      for (let row = 0; row < rows; row++) extents.push(extent)
    }
    const last = extents.at(-1) ?? 0
    while (extents.length < Batch.totalRows(this.#batch)) extents.push(last)
    return extents
  }

  #extent(dim: string, tensors: ReadonlyArray<TypedTensor | undefined>): number {
    for (const [position, { dims }] of this.#inputs.definition.signature.inputs.entries()) {
      const axis = dims.indexOf(dim)
      const shape = tensors[position]?.shape
      if (axis >= 0 && shape !== undefined) return shape[shape.length - dims.length + axis] ?? 0
    }
    return 0
  }
}

/** Whether every row has the bytes of this one. */
const repeats = ({ bytes }: TypedTensor, { bytes: row }: TypedTensor): boolean => {
  if (row.length === 0) return bytes.length === 0
  if (bytes.length % row.length !== 0) return false
  for (let index = row.length; index < bytes.length; index++) {
    if (bytes[index] !== bytes[index - row.length]) return false
  }
  return true
}
