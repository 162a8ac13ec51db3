/**
 * The class of a model: its declaration and also the Effect service that calls the model, in servers and clients. A
 * layer provides the service: a handler, an ONNX file, a pipeline, or a remote server.
 */
import { Context } from "effect"
import type { Declared, DeclarationOf } from "../model/Declared.ts"
import type { ErrorEntries } from "../model/DeclaredErrors.ts"
import { define, type Definition, type DefinitionOptions } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { ParameterFields } from "../model/ParameterFields.ts"
import type { SequenceOptions, SequenceTypeOf } from "../model/SequenceOptions.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import type { CallsOf } from "./Session.ts"

/** Prefix of the service keys of models. */
export const modelKeyPrefix = "@nereid/model/"

export type ModelKey<N extends string> = `${typeof modelKeyPrefix}${N}`

/** The class that `Model.Service` makes: a service key and the model's definition. */
export interface ModelClass<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends Context.ServiceClass<Self, ModelKey<N>, CallsOf<I, O, P>> {
  readonly definition: Definition<I, O, P>
}

/** Any class that `Model.Service` makes, with its types erased. */
export type DeclaredModel = Context.Key<unknown, { readonly model: RunningModel }> & {
  readonly definition: Definition<Fields, Fields>
}

/**
 * Declares a model:
 *
 * ```ts
 * class Sentiment extends Model.Service<Sentiment>()("sentiment", {
 *   inputs: { TEXT: Tensor.utf8() },
 *   outputs: { CLASS: Tensor.labels(["negative", "positive"]), PROB: Tensor.scalar("FP32") },
 *   maxBatchSize: 32,
 * }) {}
 * ```
 * @throws TypeError if a number is out of range or a field does not encode to a tensor
 */
export const Service =
  <Self>() =>
  <
    const N extends string,
    const I extends Fields,
    const O extends Fields,
    const P extends ParameterFields | undefined = undefined,
    const R extends ParameterFields | undefined = undefined,
    const E extends ErrorEntries | undefined = undefined,
    const Q extends SequenceOptions | undefined = undefined,
  >(
    name: N,
    options: DefinitionOptions<I, O, P, R, E, Q>,
  ): ModelClass<Self, N, I, O, DeclarationOf<P, R, E, SequenceTypeOf<Q>>> => {
    type Calls = CallsOf<I, O, DeclarationOf<P, R, E, SequenceTypeOf<Q>>>
    const key: ModelKey<N> = `${modelKeyPrefix}${name}`
    const service: Context.ServiceClass<Self, ModelKey<N>, Calls> = Context.Service<Self, Calls>()(key)
    return Object.assign(service, { definition: define(name, options) })
  }
