/**
 * Types of a model's declarations beside inputs and outputs: parameters of requests, parameters of responses, and
 * errors. One type holds all three, so that generic code passes on one type argument instead of three.
 * ParameterFields.ts and DeclaredErrors.ts have the values.
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

/** Undefined for a model without these declarations. */
export type Declared = Declaration | undefined

export type DeclarationOf<
  P extends ParameterFields | undefined,
  R extends ParameterFields | undefined,
  E extends ErrorEntries | undefined,
> = [P, R, E] extends [undefined, undefined, undefined] ? undefined : Declaration<P, R, E>

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
