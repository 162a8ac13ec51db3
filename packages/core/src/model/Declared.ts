/**
 * What a model declares beside its inputs and outputs, as types: the parameters of requests and of responses, and the errors
 * that it fails with. One type for all three, so that what passes a model's types on has one more of them, and not three.
 * What they are at run time is ParameterFields.ts's and DeclaredErrors.ts's business.
 */
import type { Schema } from "effect"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Parameters } from "../request/Request.ts"
import type { ErrorEntries, ErrorOf } from "./DeclaredErrors.ts"
import type { ParameterFields } from "./ParameterFields.ts"

export interface Declaration<
  P extends ParameterFields | undefined = ParameterFields | undefined,
  R extends ParameterFields | undefined = ParameterFields | undefined,
  E extends ErrorEntries | undefined = ErrorEntries | undefined,
> {
  readonly parameters: P
  readonly responseParameters: R
  readonly errors: E
}

/** Undefined for nothing. */
export type Declared = Declaration | undefined

export type Declares<
  P extends ParameterFields | undefined,
  R extends ParameterFields | undefined,
  E extends ErrorEntries | undefined,
> = [P, R, E] extends [undefined, undefined, undefined] ? undefined : Declaration<P, R, E>

/** The parameters of a request that a handler has. */
export type Handled<P extends Declared> = P extends { readonly parameters: infer F extends ParameterFields }
  ? Schema.Struct.Type<F>
  : Parameters

type Given<T, E> = { readonly [K in keyof E]: K extends keyof T ? T[K] : never }

/** The parameters that a caller gives: those with a default may be left out. */
export type Asked<P extends Declared> = P extends { readonly parameters: infer F extends ParameterFields }
  ? Given<Schema.Struct.Type<F>, Schema.Struct.Encoded<F>>
  : Parameters

/** The parameters of a response. */
export type Told<P extends Declared> = P extends { readonly responseParameters: infer F extends ParameterFields }
  ? Schema.Struct.Type<F>
  : Parameters

/** The errors that a model declares. */
export type DeclaredError<P extends Declared> = P extends { readonly errors: infer E extends ErrorEntries }
  ? ErrorOf<E[number]>
  : never

/** Whatever a call of the model can fail with. */
export type CallError<P extends Declared> = InferenceError | DeclaredError<P>

/**
 * What a handler may fail with: what the model declares, beside the general errors; anything, where it declares no errors, which
 * callers have as ExecutionFailed.
 */
export type Failing<P extends Declared> = P extends { readonly errors: ErrorEntries } ? CallError<P> : unknown
