/**
 * A model whose handler is made for each sequence, and holds the state of the sequence itself: in variables of a
 * closure, or in resources of a scope. SequenceHandler.ts has handlers that get the state and return it.
 */
import { type Context, Effect, Exit, Layer, Scope } from "effect"
import type { ModelClass } from "../call/ModelClass.ts"
import type { Declared, Failing, StateOf } from "../model/Declared.ts"
import type { Literals, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import type { SequenceEnd, SequenceId, SequencePosition } from "../request/SequencePosition.ts"
import type { CheckedHandler, InForm, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import * as EachHandler from "./EachHandler.ts"
import type { FirstMistake, HandledSequence, Unsequenced } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { HandledRequest, RequestContext } from "./RequestContext.ts"
import { unhosted } from "./SequenceHandler.ts"
import { SequenceScopes } from "./SequenceScopes.ts"
import { handledSequence, isOfSequence, positionOf } from "./SequenceStates.ts"
import { type HandlerResult, suspend, type ThrownError } from "./UserCode.ts"

/** A sequence whose handler is made. */
export interface OpenedSequence {
  readonly id: SequenceId
  /** Why the sequence is over, for finalizers; undefined while it lives. */
  readonly reason: () => SequenceEnd | undefined
}

/** One decoded sample in, outputs out, as a handler of `Model.each`. */
export type PerSequenceHandler<I extends Fields, O extends Fields, E, R, P extends Declared> = (
  sample: Sample<I>,
  request: HandledSequence<P>,
) => HandlerResult<Sample<O> | Literals<O>, E, R>

type CheckedPerSequenceHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [sample: Sample<I>, request: HandledSequence<P>],
  A,
  HandlerResult<Sample<O> | Literals<O>, never, never>,
  HandlerResult<Sample<O> | Literals<O>, Failing<P>, unknown>,
  InForm<A, Sample<O> | Literals<O>, Failing<P>>,
  FirstMistake<
    Unsequenced<N, P, A>,
    FirstMistake<
      Stateless<N, StateOf<P>, A>,
      OutputMistake<N, Sample<O>, ValueOf<A>, A, HandlerResult<Sample<O> | Literals<O>, Failing<P>, unknown>>
    >
  >,
  EMake,
  RMake
>

/** The mistake of a model that declares a state, as a text. */
type Stateless<N extends string, State, A> = [A] extends [never]
  ? unknown
  : [State] extends [undefined]
    ? unknown
    : `model ${N} declares the state of its sequences: provide it with Model.sequence`

/**
 * A model with sequences from a function that makes the handler of one sequence, at its first request:
 *
 * ```ts
 * Model.perSequence(Counter, () => {
 *   let sum = 0
 *   return ({ VALUE }) => ({ TOTAL: (sum += VALUE) })
 * })
 * ```
 *
 * An Effect may make it, in a scope that closes when the sequence ends, expires or is cancelled, or when the model
 * unloads. Its failure is that of the request, and the next request tries again. The declaration has no `state`. The
 * requests of a sequence are handled one by one.
 */
export function perSequence<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  A = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.HandlerOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  make: (sequence: OpenedSequence) => CheckedPerSequenceHandler<N, I, O, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<
  Self,
  Handler.Failure<Options>,
  Handler.Needs<never, Exclude<RequirementsOf<A> | Exclude<RMake, Scope.Scope>, RequestContext>, Options>
>
export function perSequence<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  E extends Failing<P>,
  R,
  EMake,
  RMake,
  P extends Declared,
  const Options extends Handler.HandlerOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  make: (
    sequence: OpenedSequence,
  ) => Effect.Effect<PerSequenceHandler<I, O, E, R, P>, EMake, RMake> | PerSequenceHandler<I, O, E, R, P>,
  options?: GivenOptions<Options, Handler.HandlerOptions<I>>,
): Layer.Layer<
  Self,
  Handler.Failure<Options>,
  Handler.Needs<never, Exclude<R | Exclude<RMake, Scope.Scope>, RequestContext>, Options>
> {
  const { definition } = model
  if (definition.state !== undefined && definition.state._tag !== "none") {
    throw new TypeError(
      `Model "${definition.name}" declares the state of its sequences: provide it with Model.sequence.`,
    )
  }
  const execute = EachHandler.executor(definition)
  type Opened = PerSequenceHandler<I, O, E, R, P>
  type Services = Exclude<R | Exclude<RMake, Scope.Scope>, RequestContext>

  const open = (scopes: SequenceScopes, position: SequencePosition) =>
    Effect.suspend(() => {
      const opened = scopes.make()
      position.state.onEnd = (reason) => opened.end(reason)
      const made = make({ id: position.id, reason: () => opened.reason })
      return Scope.provide(Effect.isEffect(made) ? made : Effect.succeed(made), opened.scope).pipe(
        Effect.onExit((exit) => {
          if (Exit.isSuccess(exit)) {
            position.state.value = new Held(exit.value)
            return Effect.void
          }
          position.state.onEnd = undefined
          return opened.closed("failed")
        }),
      )
    })

  const handle =
    (scopes: SequenceScopes) =>
    (
      sample: Sample<I>,
      request: HandledRequest<P>,
    ): HandlerResult<Sample<O> | Literals<O>, E | EMake | ThrownError, R | Exclude<RMake, Scope.Scope>> => {
      const position = positionOf(request)
      // The declaration has no state.
      const handled = handledSequence(request, position, undefined)
      const call = (handler: Opened) => handler(sample, handled)
      const { value } = position.state
      if (value instanceof Held) return call(value.handler as Opened)
      const first = Effect.flatMap(open(scopes, position), (handler) => suspend(() => call(handler)))
      // A warm-up has no sequence that ends.
      return isOfSequence(request)
        ? first
        : Effect.ensuring(
            first,
            Effect.sync(() => position.state.onEnd?.("ended")),
          )
    }

  return Layer.unwrap(
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context<never>())
      const scopes = new SequenceScopes((closing) => void fork(closing))
      yield* Effect.addFinalizer(() => scopes.close)
      return Handler.instances(
        model,
        unhosted(definition.name, handle(scopes)),
        options,
        (handler, context: Context.Context<Services>, environment) => execute(handler, context, environment),
        { granularity: "sample", hasSequences: true },
      )
    }),
  )
}

/** The handler of a sequence. */
class Held {
  readonly handler: unknown

  constructor(handler: unknown) {
    this.handler = handler
  }
}
