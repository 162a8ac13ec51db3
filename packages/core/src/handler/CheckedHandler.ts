/**
 * The parameter type of `Model.each` and its siblings: a handler, or an Effect that builds one, whose return type the
 * compiler infers as a whole and then compares with the model's outputs. The whole type is needed to find an undeclared
 * output, which assignability accepts.
 *
 * Types only. Each of those functions has this type in its one overload, while its implementation takes the same
 * handler as EachHandler or the like: inside, A is unknown, and the compiler could not relate the two.
 */
import type { Effect } from "effect"

/** A handler, or an Effect that builds one, once per instance. */
export type Make<H, EMake, RMake> = Effect.Effect<H, EMake, RMake> | H

/**
 * A handler whose code returns `A`.
 *
 * `Context` is the expected return type while A is unknown: the code's literals get their types from it. Its effects
 * neither fail nor need services, since inference would find both in A otherwise. `Fits` is the bound of A, and `Fit`
 * the same bound in the form of A (a value, a promise or an effect), for which the compiler prints a shorter message.
 * `Mistake` is `unknown` for a sound A, otherwise the text that the compiler prints last; `Fit` does not apply then,
 * because its message would replace that text.
 */
export type CheckedHandler<
  Arguments extends ReadonlyArray<unknown>,
  A,
  Context,
  Fits,
  Fit,
  Mistake,
  EMake,
  RMake,
> = Make<
  | ((...args: Arguments) => A & ([A] extends [Fits] ? unknown : unknown extends Mistake ? Fit : unknown))
  | ((...args: Arguments) => Context),
  EMake,
  RMake
> &
  Mistake

/** The value that a function returns, directly, by a promise or by an effect. */
export type ValueOf<A> =
  A extends Effect.Effect<infer Value, infer _E, infer _R> ? Value : A extends PromiseLike<infer Value> ? Value : A

/** `Value` in the form in which `A` has its own value: directly, by a promise or by an effect. */
export type InForm<A, Value, E> =
  A extends Effect.Effect<infer _A, infer _E, infer _R>
    ? Effect.Effect<Value, E, unknown>
    : A extends PromiseLike<infer _A>
      ? PromiseLike<Value>
      : Value

/** The services that a returned effect needs. */
export type RequirementsOf<A> = 0 extends 1 & A
  ? never
  : A extends Effect.Effect<infer _A, infer _E, infer R>
    ? R
    : never
