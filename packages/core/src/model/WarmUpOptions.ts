/**
 * Options of the warm-up: requests that an instance executes before its model takes requests. provide/WarmUp.ts
 * executes them.
 */
import type { Duration } from "effect"
import type { Parameters } from "../request/Request.ts"
import type { SyntheticValues } from "../synthetic/SyntheticTensor.ts"
import type { Input } from "./Definition.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import type { Fields, SymbolsOf } from "./Field.ts"

/** Requests that a model executes before it is ready. */
export interface WarmUpOptions<I extends Fields> {
  /**
   * Inputs of the requests: samples, each of which is a request and may share batches; or synthetic tensors of the
   * required inputs, and of the optional ones that are named here. Default zeros: numbers 0, empty texts. Random values
   * are the same at each start. By input: `{ image: "random", threshold: "zeros" }`.
   */
  readonly inputs?: SyntheticValues | SyntheticInputs<I> | ReadonlyArray<Input<I>>
  /** Extents of symbolic dims in synthetic tensors, by their name. Default 1, as always that of dims of -1. */
  readonly sizes?: { readonly [N in SymbolsOf<I>]?: number }
  /**
   * Rows of a request, which is a separate batch; for several numbers, one request of each. Samples are repeated to
   * this number of rows. Default 1.
   */
  readonly batchSize?: number | ReadonlyArray<number>
  /** Of each request, as on the wire: integers are bigint, doubles number. Default none. */
  readonly parameters?: Parameters
  /** How often all of this. Default 1. */
  readonly count?: number
  /** How long each request may take. Default 5 minutes. */
  readonly timeout?: Duration.Input
  /** Name in the log. Default its number among the warm-ups of the model, from 0. */
  readonly name?: string
  /** Whether a request that fails is the failure of the model, or only a warning in the log. Default "fail". */
  readonly onFailure?: "fail" | "ignore"
}

/** Values of synthetic tensors, by input. Inputs that are missing are zeros if they are required. */
export type SyntheticInputs<I extends Fields> = { readonly [K in keyof I]?: SyntheticValues }

/** A warm-up: the values of synthetic tensors, such as `"zeros"`, or its options. */
export type WarmUp<I extends Fields> = SyntheticValues | WarmUpOptions<I>

/** One, or several, one after the other. */
export type WarmUps<I extends Fields> = WarmUp<I> | ReadonlyArray<WarmUp<I>>

/** As a list of objects. */
export const warmUpList = <I extends Fields>(warmUp: WarmUps<I> | undefined): ReadonlyArray<WarmUpOptions<I>> => {
  if (warmUp === undefined) return []
  const all = isList(warmUp) ? warmUp : [warmUp]
  return all.map((one) => (typeof one === "string" ? { inputs: one } : one))
}

/** The values of the synthetic tensor of an input; undefined for an optional input that the warm-up does not name. */
export const valuesOf = <I extends Fields>(
  inputs: SyntheticValues | SyntheticInputs<I>,
  { name, optional }: Pick<TensorSpec, "name" | "optional">,
): SyntheticValues | undefined => {
  if (typeof inputs === "string") return optional ? undefined : inputs
  const values: { readonly [name: string]: SyntheticValues | undefined } = inputs
  return (Object.hasOwn(values, name) ? values[name] : undefined) ?? (optional ? undefined : "zeros")
}

/** Whether the inputs are samples. */
export const isSamples = <I extends Fields>(
  inputs: SyntheticValues | SyntheticInputs<I> | ReadonlyArray<Input<I>>,
): inputs is ReadonlyArray<Input<I>> => Array.isArray(inputs)

const isList = <I extends Fields>(warmUp: WarmUps<I>): warmUp is ReadonlyArray<WarmUp<I>> => Array.isArray(warmUp)
