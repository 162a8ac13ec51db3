/**
 * The declaration of a model as a value: name, inputs, outputs, parameters, errors and batching. The class for calls is
 * in call/ModelClass.ts.
 */
import type { Schema } from "effect"
import { type Batching, type BatchingOptions, resolve } from "./Batching.ts"
import { requireInteger } from "./OptionChecks.ts"
import * as Defaults from "./Defaults.ts"
import { type Field, type Fields, spec } from "./Field.ts"
import type { Declared, DeclarationOf } from "./Declared.ts"
import * as DeclaredErrors from "./DeclaredErrors.ts"
import type { ParameterFields } from "./ParameterFields.ts"
import * as SequenceOptions from "./SequenceOptions.ts"
import type { Sequencing } from "./Sequencing.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"

/** One sample of these fields in code: `{ TEXT: string }`. Optional fields without a default are optional keys. */
export type Sample<F extends Fields> = Schema.Struct.Type<F>

/** The same as callers give it: a field with a default is an optional key too. */
export type Input<F extends Fields> = { readonly [K in keyof Schema.Struct.Encoded<F>]: F[K]["Type"] }

/**
 * Of samples, those whose values are all texts and numbers: nothing that a sample is not. Beside Sample in what a
 * function is to return it has the compiler keep the text of a literal, which it would widen to string while O is not
 * known.
 */
export type Literals<F extends Fields> = {
  readonly [K in keyof F]: Extract<F[K]["Type"], string | number | bigint | boolean>
}

type BatchedTensor<T> = T extends TypedTensor<infer D, infer S> ? TypedTensor<D, readonly [number, ...S]> : never

/** The same fields as tensors of many samples, along axis 0. */
export type Batched<F extends Fields> = {
  readonly [K in keyof Schema.Struct.Type<F>]: BatchedTensor<F[K]["Encoded"]>
}

/** The same as callers give them. */
export type InputBatch<F extends Fields> = {
  readonly [K in keyof Schema.Struct.Encoded<F>]: BatchedTensor<Schema.Struct.Encoded<F>[K]>
}

/** Declaration of a model: its tensors, parameters, errors and batching. */
export interface DefinitionOptions<
  I extends Fields,
  O extends Fields,
  P extends ParameterFields | undefined = undefined,
  R extends ParameterFields | undefined = undefined,
  E extends DeclaredErrors.ErrorEntries | undefined = undefined,
  Q extends SequenceOptions.SequenceOptions | undefined = undefined,
> {
  readonly inputs: I
  readonly outputs: O
  /**
   * Schemas of optional and required request parameters, by name; forwarded headers have lower-case names. A request
   * with an invalid parameter fails with InvalidRequest. Default: handlers receive all parameters unchanged.
   */
  readonly parameters?: P
  /**
   * Schemas of parameters that handlers set on responses, by name. They are typed for handlers and, by
   * `withParameters`, for callers. Default: handlers may set any, and callers receive them unchanged.
   */
  readonly responseParameters?: R
  /**
   * Classes of errors that handlers fail with, made by `Schema.TaggedError`. Callers catch the same class by its tag,
   * with its fields, for local and remote models. A status is for clients that do not know the class. If a model
   * declares errors, its handlers fail only with these and with those of `Errors`. Default: failures of handlers are
   * ExecutionFailed.
   *
   * ```ts
   * class BadImage extends Schema.TaggedError<BadImage>()("BadImage", { reason: Schema.String }) {}
   *
   * errors: [TooDark, [BadImage, { http: 422, grpc: "INVALID_ARGUMENT" }]]
   * ```
   */
  readonly errors?: E
  /** The most rows of one batch. Default 0: the model has no batch dimension, one request is one execution. */
  readonly maxBatchSize?: number
  /** A positive integer. Default 1. */
  readonly version?: number
  readonly batching?: BatchingOptions<NoInfer<I>, NoInfer<P>>
  /**
   * Makes a model with sequences: its requests belong to sessions, and a handler gets the state that the request before
   * has left. Default: requests are independent.
   */
  readonly sequence?: Q & SequenceOptions.CheckedSequence<Q>
}

/** The declaration that a model class has as `definition`, with all defaults. */
export interface Definition<I extends Fields, O extends Fields, P extends Declared = Declared> {
  readonly name: string
  readonly version: string
  readonly inputs: I
  readonly outputs: O
  /** As declared; with its types for callers and handlers. */
  readonly declared: P
  readonly parameters: ParameterFields | undefined
  readonly responseParameters: ParameterFields | undefined
  /** Undefined if none are declared. */
  readonly errors: DeclaredErrors.DeclaredErrors | undefined
  readonly maxBatchSize: number
  readonly batching: Batching
  /** State of the sequences that are declared in code. */
  readonly state?: SequenceOptions.DeclaredState | undefined
  /** Undefined for a model without sequences. */
  readonly sequencing?: Sequencing | undefined
  /** The specs of inputs and outputs, derived from their Schemas. */
  readonly signature: Signature
}

/**
 * Checks a declaration.
 * @throws TypeError if a number is out of range or a field does not encode to a tensor
 */
export const define = <
  I extends Fields,
  O extends Fields,
  P extends ParameterFields | undefined,
  R extends ParameterFields | undefined,
  E extends DeclaredErrors.ErrorEntries | undefined,
  Q extends SequenceOptions.SequenceOptions | undefined,
>(
  name: string,
  options: DefinitionOptions<I, O, P, R, E, Q>,
): Definition<I, O, DeclarationOf<P, R, E, SequenceOptions.SequenceTypeOf<Q>>> => {
  const { inputs, outputs, maxBatchSize = 0, version = 1, batching = {} } = options
  const { parameters, responseParameters, errors } = options
  if (!isName(name)) {
    const rule =
      "a name must be one segment of a URL path: not empty, not . or .., without slashes and control characters"
    throw new TypeError(`${JSON.stringify(name)} is not a valid model name: ${rule}.`)
  }
  requireInteger(name, "maxBatchSize", maxBatchSize, 0)
  requireInteger(name, "version", version, 1)
  const signature = { inputs: specs(inputs), outputs: specs(outputs) }
  const unfilled = Defaults.problem(signature)
  if (unfilled !== undefined) throw new TypeError(`Model "${name}": ${unfilled}.`)
  const sequence = options.sequence && SequenceOptions.resolve(name, signature, options.sequence)
  const queued = sequence === undefined ? batching : { ...SequenceOptions.queueing(sequence.sequencing), ...batching }
  const resolved = resolve(name, maxBatchSize, signature, queued, parameters)
  if (sequence !== undefined && resolved.onFailure === "bisect") {
    const reason = "because a request of a sequence is executed once"
    throw new TypeError(`Model "${name}": batching.onFailure must not be "bisect", ${reason}.`)
  }
  return {
    name,
    version: String(version),
    inputs,
    outputs,
    // Nothing looks at it: it is what the types are inferred from.
    declared: { parameters, responseParameters, errors } as DeclarationOf<P, R, E, SequenceOptions.SequenceTypeOf<Q>>,
    parameters,
    responseParameters,
    errors: errors === undefined ? undefined : DeclaredErrors.make(name, errors),
    maxBatchSize,
    batching: resolved,
    ...(sequence !== undefined && { state: sequence.state, sequencing: sequence.sequencing }),
    signature,
  }
}

/**
 * Whether the name can be one segment of a URL's path: not empty, "." or "..", and without "/" and control characters.
 */
const isName = (name: string): boolean => !/^\.{0,2}$|[/\p{Cc}]/u.test(name) && name.isWellFormed()

const specs = (fields: { readonly [name: string]: Field }) =>
  Object.entries(fields).map(([name, field]) => spec(name, field))
