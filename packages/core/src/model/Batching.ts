/**
 * The batching options of a model, typed by its inputs, and the checked options with their defaults. RequestQueue.ts
 * and Batch.ts implement them.
 */
import { Duration } from "effect"
import type { DataType } from "../tensor/DataType.ts"
import type { DataTypeOf, Fields, SymbolsOf } from "./Field.ts"
import { defaultMaxQueueSize, type Queueing, type QueueingOptions, resolve as resolveQueueing } from "./QueuePolicy.ts"
import { positive, requireInteger } from "./OptionChecks.ts"
import type { ParameterFields } from "./ParameterFields.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import { type Element, elementBytes } from "../tensor/Element.ts"

interface ClosingOptions {
  /** Maximum time that a request waits for others. Default 0: a free instance takes all queued requests. */
  readonly maxQueueDelay?: Duration.Input
  /** Numbers of rows at which a batch goes at once; only of use together with a delay. */
  readonly preferredBatchSizes?: ReadonlyArray<number>
  /**
   * Time in which requests without a deadline are to be answered. A request that would take longer is refused on
   * arrival with `QueueFull`. Default: the time that callers wait, learned from those that leave before their answer.
   */
  readonly latencyTarget?: Duration.Input
}

/** Batching options of a declaration: how batches close, which requests share them, and how requests queue. */
export type BatchingOptions<I extends Fields, P extends ParameterFields | undefined = undefined> = ClosingOptions &
  SharingOptions<I, P> &
  QueueingOptions

/** Whether a group of requests that may share batches waits independently of others, or in the order of arrival. */
export type GroupOrder = "independent" | "arrival"

interface SharingOptions<I extends Fields, P extends ParameterFields | undefined> {
  /**
   * Whether requests share batches. If not, each request is a separate batch of all its rows, for the next free
   * instance. Default true.
   */
  readonly shared?: boolean
  /**
   * Row counts that batches are padded to: the smallest that holds the batch, the largest being `maxBatchSize`. The
   * last row is repeated, and the outputs of the copies are dropped. For executors that are slow at new sizes.
   * "preferred" means `preferredBatchSizes`, or `maxBatchSize` if there are none. Requires execution of whole batches:
   * `Model.batch` and ONNX. Default: no padding.
   */
  readonly padTo?: ReadonlyArray<number> | "preferred"
  /**
   * Symbolic dims whose extents may differ among the requests of a batch. Tensors are padded at their end, and outputs
   * with the same dim are cut back to each request's extent. Requires execution of whole batches. Default none.
   *
   * ```ts
   * ragged: { sequence: { buckets: [32, 64, 128], pad: { input_ids: 1n } } }
   * ```
   */
  readonly ragged?: Ragged<I>
  /**
   * Fields that must be equal within a batch: values of inputs, byte by byte, and of request parameters. Parameters are
   * those that the model declares or, without a declaration, any; a missing parameter is a value too. A request whose
   * rows differ in these inputs is executed in parts, and answered as one. No effect on `Model.each`, which has one
   * sample at a time. Default none.
   *
   * ```ts
   * groupBy: { inputs: ["temperature"], parameters: ["language"], pad: { logits: 0 } }
   * ```
   */
  readonly groupBy?: GroupBy<I, P>
  /**
   * Order of requests that cannot share a batch, because of their shapes, their optional inputs or `groupBy`.
   * "independent": each group waits for more requests of its own, whatever arrives in between. "arrival": requests go
   * in the order in which they came, and a request that cannot join the waiting batch sends it off, as in Triton.
   * Default "independent".
   */
  readonly groupOrder?: GroupOrder
  /**
   * Handling of a failed batch. "fail" fails all its requests. "bisect" executes it again in halves, until each failing
   * request is isolated and all others have their responses. Only for models that may execute a request twice; n
   * requests that all fail take 2n - 1 executions. Default "fail".
   */
  readonly onFailure?: "fail" | "bisect"
}

export interface GroupBy<I extends Fields, P extends ParameterFields | undefined = undefined> {
  readonly inputs?: ReadonlyArray<keyof I & string>
  readonly parameters?: ReadonlyArray<P extends ParameterFields ? keyof P & string : string>
  /**
   * Elements by the name of an output. If the parts of a request give this output different extents, they are filled up
   * at their end to the longest. Default none: such a request fails.
   */
  readonly pad?: { readonly [output: string]: Element<DataType> }
}

/** By the names of symbolic dims. */
export type Ragged<I extends Fields> = { readonly [N in SymbolsOf<I>]?: RaggedDimOptions<I, N> }

export interface RaggedDimOptions<I extends Fields, N extends string> {
  /**
   * Requests share a batch if their extents fall into the same bucket. A request beyond the largest bucket shares its
   * batch only with those of equal extent. Default: requests of any extents share one.
   */
  readonly buckets?: ReadonlyArray<number>
  /**
   * Target extent of padding: that of the bucket, for executors that are slow at new shapes, or the longest of the
   * batch, which computes less. Default "bucket" if there are buckets.
   */
  readonly to?: "bucket" | "longest"
  /** The element that each input is padded with. Default 0, false, or no bytes. */
  readonly pad?: { readonly [K in InputsWith<I, N>]?: Element<DataTypeOf<I[K]>> }
}

type InputsWith<I extends Fields, N extends string> = {
  readonly [K in keyof I]: N extends SymbolsOf<Pick<I, K>> ? K : never
}[keyof I]

/** The options of any model. */
type UntypedOptions = ClosingOptions &
  QueueingOptions & {
    readonly shared?: boolean
    readonly padTo?: ReadonlyArray<number> | "preferred"
    readonly ragged?: { readonly [dim: string]: UntypedDimOptions | undefined }
    readonly groupBy?: {
      readonly inputs?: ReadonlyArray<string>
      readonly parameters?: ReadonlyArray<string>
      readonly pad?: { readonly [output: string]: Element<DataType> }
    }
    readonly groupOrder?: GroupOrder
    readonly onFailure?: "fail" | "bisect"
  }

interface UntypedDimOptions {
  readonly buckets?: ReadonlyArray<number>
  readonly to?: "bucket" | "longest"
  readonly pad?: { readonly [input: string]: Element<DataType> | undefined }
}

/** The options with their defaults. Optional members are set only by configurations. */
export interface Batching {
  /** Whether requests share batches. */
  readonly shared: boolean
  readonly maxQueueDelay: Duration.Duration
  readonly preferredBatchSizes: ReadonlyArray<number>
  readonly maxQueueSize: number
  /** Undefined if it is learned. */
  readonly latencyTarget?: Duration.Duration | undefined
  /** Undefined if all requests are equal, and wait as long as they like. */
  readonly queueing?: Queueing | undefined
  /** The smallest first; the last one is `maxBatchSize`. Empty: batches are never filled up. */
  readonly padTo: ReadonlyArray<number>
  readonly ragged: ReadonlyArray<RaggedDim>
  readonly groupBy: ResolvedGroupBy
  readonly groupOrder: GroupOrder
  readonly onFailure: "fail" | "bisect"
  /**
   * Positions of inputs whose shapes may differ among the requests of a batch, although their tensors are not joined.
   * All other inputs must agree. Default: any may differ.
   */
  readonly differing?: ReadonlySet<number>
  /** For tests of batches: requests that must wait before the first batch is executed. */
  readonly startsAt?: StartThreshold | undefined
}

export interface StartThreshold {
  readonly requests: number
  /** Requests of sequences that wait for a slot, which `requests` does not count. */
  readonly backlogged: number
}

/** Positions of inputs, names of parameters, and the bytes of elements by the positions of outputs. */
export interface ResolvedGroupBy {
  readonly inputs: ReadonlyArray<number>
  readonly parameters: ReadonlyArray<string>
  readonly pad: ReadonlyMap<number, Uint8Array>
}

/** A symbolic dim that may differ among the requests of a batch. */
export interface RaggedDim {
  readonly name: string
  /** The smallest first; empty: all extents are one bucket. */
  readonly buckets: ReadonlyArray<number>
  readonly to: "bucket" | "longest"
  /** Where it stands. */
  readonly inputs: ReadonlyArray<RaggedAxis>
  readonly outputs: ReadonlyArray<RaggedAxis>
}

/** One axis of one tensor. */
export interface RaggedAxis {
  /** In the signature's inputs, or outputs. */
  readonly position: number
  /** Counted with the batch dimension. */
  readonly axis: number
  /** The bytes of one element, which it is padded with. */
  readonly element: Uint8Array
}

/** @throws TypeError if an option is out of range, or names an unknown tensor */
export const resolve = <I extends Fields, P extends ParameterFields | undefined>(
  model: string,
  maxBatchSize: number,
  signature: Signature,
  options: BatchingOptions<I, P>,
  parameters?: P,
): Batching => {
  // Narrower in its names alone.
  const {
    maxQueueDelay = 0,
    preferredBatchSizes = [],
    latencyTarget,
    shared = true,
    padTo,
    ragged = {},
    groupBy = {},
    groupOrder = "independent",
    onFailure = "fail",
    ...queueing
  } = options as UntypedOptions
  requireSizes(model, "preferredBatchSizes", preferredBatchSizes, maxBatchSize)
  const preferred = preferredBatchSizes.length > 0 ? preferredBatchSizes : [maxBatchSize]
  const dims = Object.entries(ragged).flatMap(([name, dim]) => (dim === undefined ? [] : [{ name, ...dim }]))
  const needsBatches = padTo === "preferred" ? "padTo" : dims.length > 0 ? "ragged" : undefined
  if (needsBatches !== undefined && maxBatchSize === 0) {
    throw new TypeError(`Model "${model}": ${needsBatches} requires batching: maxBatchSize is 0.`)
  }
  const sizes = padTo === "preferred" ? preferred : (padTo ?? [])
  requireSizes(model, "padTo", sizes, maxBatchSize)
  return {
    shared,
    maxQueueDelay: Duration.fromInputUnsafe(maxQueueDelay),
    preferredBatchSizes,
    maxQueueSize: queueing.maxQueueSize ?? defaultMaxQueueSize,
    ...(latencyTarget !== undefined && { latencyTarget: positive(model, "latencyTarget", latencyTarget) }),
    queueing: resolveQueueing(model, queueing),
    padTo: sizes.length === 0 ? [] : [...new Set([...sizes, maxBatchSize])].toSorted((a, b) => a - b),
    ragged: dims.map((dim) => raggedDim(model, signature, dim)),
    groupBy: {
      inputs: positions(model, signature, groupBy.inputs ?? []),
      parameters: declared(model, parameters, groupBy.parameters ?? []),
      pad: paddedOutputs(model, signature, groupBy.pad ?? {}),
    },
    groupOrder,
    onFailure,
  }
}

const raggedDim = (
  model: string,
  { inputs, outputs }: Signature,
  {
    name,
    buckets = [],
    to = buckets.length > 0 ? "bucket" : "longest",
    pad = {},
  }: UntypedDimOptions & { name: string },
): RaggedDim => {
  const refuse = (text: string) => new TypeError(`Model "${model}": ragged dimension "${name}" ${text}.`)
  for (const bucket of buckets) requireInteger(model, `a bucket of "${name}"`, bucket, 1)
  if (to === "bucket" && buckets.length === 0) throw refuse('has no buckets, but "to" is "bucket"')
  const axes = (specs: Signature["inputs"]) =>
    specs.flatMap((spec, position) =>
      spec.dims.flatMap((dim, axis) => {
        if (dim !== name) return []
        const element = elementBytes(spec.datatype, pad[spec.name])
        if (element === undefined) throw refuse(`cannot pad ${spec.datatype} of "${spec.name}" with ${pad[spec.name]}`)
        return [{ position, axis: axis + 1, element }]
      }),
    )
  const [given, computed] = [axes(inputs), axes(outputs)]
  if (given.length === 0) throw refuse("is not a dimension of any input")
  const stranger = Object.keys(pad).find((input) => !given.some(({ position }) => inputs[position]?.name === input))
  if (stranger !== undefined) throw refuse(`is not a dimension of the padded input "${stranger}"`)
  return { name, buckets: buckets.toSorted((a, b) => a - b), to, inputs: given, outputs: computed }
}

const positions = (model: string, { inputs }: Signature, names: ReadonlyArray<string>): ReadonlyArray<number> =>
  names.map((name) => {
    const position = inputs.findIndex((spec) => spec.name === name)
    if (position >= 0) return position
    throw new TypeError(`Model "${model}": groupBy names the unknown input "${name}".`)
  })

const paddedOutputs = (
  model: string,
  { outputs }: Signature,
  pad: { readonly [output: string]: Element<DataType> },
): ReadonlyMap<number, Uint8Array> => {
  const refuse = (text: string) => new TypeError(`Model "${model}": groupBy.pad ${text}.`)
  return new Map(
    Object.entries(pad).map(([name, value]) => {
      const position = outputs.findIndex((spec) => spec.name === name)
      const spec = outputs[position]
      if (spec === undefined) throw refuse(`names the unknown output "${name}"`)
      const element = elementBytes(spec.datatype, value)
      if (element === undefined) throw refuse(`cannot pad ${spec.datatype} of "${name}" with ${value}`)
      return [position, element]
    }),
  )
}

const declared = (model: string, parameters: ParameterFields | undefined, names: ReadonlyArray<string>) => {
  const stranger = parameters && names.find((name) => !Object.hasOwn(parameters, name))
  if (stranger === undefined) return names
  throw new TypeError(`Model "${model}": groupBy names the undeclared parameter "${stranger}".`)
}

const requireSizes = (model: string, option: string, sizes: ReadonlyArray<number>, maxBatchSize: number) => {
  for (const size of sizes) {
    requireInteger(model, option, size, 1)
    if (size > maxBatchSize) {
      throw new TypeError(
        `Model "${model}": ${option} must not exceed maxBatchSize ${maxBatchSize}, but ${size} was given.`,
      )
    }
  }
}
