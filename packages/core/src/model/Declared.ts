/**
 * Types of a model's declarations beside inputs and outputs: parameters of requests, parameters of responses, errors,
 * and the state of sequences. One type holds them all, so that generic code passes on one type argument instead of
 * four. ParameterFields.ts, DeclaredErrors.ts and SequenceOptions.ts have the values.
 */
import type { Schema } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Parameters } from "../request/Request.ts"
import type { ErrorEntries, ErrorOf } from "./DeclaredErrors.ts"
import type { ParameterFields } from "./ParameterFields.ts"
import type { SequenceType, StateType } from "./SequenceOptions.ts"

/** Types of a declaration beside its inputs and outputs. */
export interface Declaration<
  P extends ParameterFields | undefined = ParameterFields | undefined,
  R extends ParameterFields | undefined = ParameterFields | undefined,
  E extends ErrorEntries | undefined = ErrorEntries | undefined,
  S extends SequenceType | undefined = SequenceType | undefined,
> {
  readonly parameters: P
  readonly responseParameters: R
  readonly errors: E
  readonly sequence: S
}

/** Undefined for a model without these declarations. */
export type Declared = Declaration | undefined

export type DeclarationOf<
  P extends ParameterFields | undefined,
  R extends ParameterFields | undefined,
  E extends ErrorEntries | undefined,
  S extends SequenceType | undefined = undefined,
> = [P, R, E, S] extends [undefined, undefined, undefined, undefined] ? undefined : Declaration<P, R, E, S>

/** The declarations of a model with sequences. */
export type SequenceDeclared = Declaration & { readonly sequence: SequenceType }

/** The state of a sequence, as handlers get and return it; undefined if the model declares none. */
export type StateOf<P extends Declared> = P extends { readonly sequence: { readonly state: infer S } }
  ? StateType<S>
  : undefined

/** Parameters of a request, as a handler gets them. */
export type RequestParameters<P extends Declared> = P extends { readonly parameters: infer F extends ParameterFields }
  ? Schema.Struct.Type<F>
  : Parameters

type Given<T, E> = { readonly [K in keyof E]: K extends keyof T ? T[K] : never }

/** Parameters of a request, as a caller gives them; those with a default are optional. */
export type RequestParametersInput<P extends Declared> = P extends {
  readonly parameters: infer F extends ParameterFields
}
  ? Given<Schema.Struct.Type<F>, Schema.Struct.Encoded<F>>
  : Parameters

/** Parameters of a response. */
export type ResponseParameters<P extends Declared> = P extends {
  readonly responseParameters: infer F extends ParameterFields
}
  ? Schema.Struct.Type<F>
  : Parameters

/** The errors that a model declares. */
export type DeclaredError<P extends Declared> = P extends { readonly errors: infer E extends ErrorEntries }
  ? ErrorOf<E[number]>
  : never

/** Errors of calls of the model. */
export type CallError<P extends Declared> = InferenceError | DeclaredError<P>

/**
 * Errors of a handler: the general errors and those that the model declares. A model that declares none may fail with
 * anything, which callers get as ExecutionFailed.
 */
export type Failing<P extends Declared> = P extends { readonly errors: ErrorEntries } ? CallError<P> : unknown
