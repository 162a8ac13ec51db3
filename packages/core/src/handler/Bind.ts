/**
 * Declares a model and its layer in one call, with tensors by position, as PyTriton's `bind`. For models that are used
 * in the module that makes them; use a class (Definition.ts) to share the contract with clients.
 */
import { Effect, type Layer } from "effect"
import { uncheckedBatch } from "./BatchHandler.ts"
import type { BatchingOptions } from "../model/Batching.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import type { Batched, DefinitionOptions } from "../model/Definition.ts"
import { type ModelClass, Service } from "../call/ModelClass.ts"
import type { Field, Fields } from "../model/Field.ts"
import type { JoinedBatch } from "./JoinedBatch.ts"
import type * as Handler from "./Handler.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import type { GroupOptions } from "../instance/InstancePlan.ts"
import { type HandlerResult, mapResult } from "./UserCode.ts"
import type { WarmUpErrorOf } from "../provide/WarmUp.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"

/** A field with a name by position, or with an explicit name. */
export type Position = Field | readonly [name: string, field: Field]

export type Positions = ReadonlyArray<Position>

type FieldOf<P> = P extends Field ? P : P extends readonly [string, infer F extends Field] ? F : never

type NameOf<P, Default extends string> = P extends readonly [infer Name extends string, Field] ? Name : Default

/** The names by position: counted from 1, also behind those that have their own. */
type Names<
  Side extends string,
  P extends ReadonlyArray<unknown>,
  Before extends ReadonlyArray<string> = [],
> = Before["length"] extends P["length"]
  ? Before
  : Names<Side, P, [...Before, NameOf<P[Before["length"]], `${Side}_${[...Before, ""]["length"] & number}`>]>

/** The fields by name. */
export type Named<Side extends string, P extends Positions> = {
  readonly [K in keyof P & `${number}` as Extract<Names<Side, P>[K & keyof Names<Side, P>], string>]: FieldOf<P[K]>
}

/** The tensors of a whole batch by position, along axis 0; undefined for an omitted optional input. */
export type Positional<P extends Positions> = {
  readonly [K in keyof P]: Only<Batched<{ readonly tensor: FieldOf<P[K]> }>>
}

type Only<F> = F extends { readonly tensor: infer T }
  ? T
  : F extends { readonly tensor?: infer T }
    ? T | undefined
    : never

/** Tensors of the whole batch in, and out, each along axis 0; out as a value, a promise or an effect. */
export type BoundHandler<I extends Positions, O extends Positions, E, R> = (
  inputs: Positional<I>,
  context: JoinedBatch<Named<"INPUT", I>>,
) => HandlerResult<Positional<O>, E, R>

type BoundHandlerResult<O extends Positions, E, R> = HandlerResult<Positional<O>, E, R>

/** The name of the output at a position, also of one beyond the declared outputs. */
type OutputName<O extends Positions, V extends ReadonlyArray<unknown>, K extends PropertyKey> = Extract<
  K extends keyof O
    ? Names<"OUTPUT", O>[K & keyof Names<"OUTPUT", O>]
    : Names<"OUTPUT", V>[K & keyof Names<"OUTPUT", V>],
  string
>

/** The values that a handler returns, by the names of its outputs; unknown if the type is not a tuple. */
type ByName<O extends Positions, V> =
  V extends ReadonlyArray<unknown>
    ? number extends V["length"]
      ? unknown
      : { readonly [K in keyof V & `${number}` as OutputName<O, V, K>]: V[K] }
    : unknown

type CheckedBoundHandler<N extends string, I extends Positions, O extends Positions, A, EMake, RMake> = CheckedHandler<
  [inputs: Positional<I>, context: JoinedBatch<Named<"INPUT", I>>],
  A,
  BoundHandlerResult<O, never, never>,
  BoundHandlerResult<O, unknown, unknown>,
  InForm<A, Positional<O>, unknown>,
  OutputMistake<N, Batched<Named<"OUTPUT", O>>, ByName<O, ValueOf<A>>, A, BoundHandlerResult<O, unknown, unknown>>,
  EMake,
  RMake
>

/** Declaration and options of a model whose tensors are given by position. */
export interface BindOptions<N extends string, I extends Positions, O extends Positions, W = WarmUps<Named<"INPUT", I>>>
  extends
    Omit<DefinitionOptions<Fields, Fields>, "inputs" | "outputs" | "batching">,
    Omit<Handler.HandlerOptions<Named<"INPUT", I>>, "warmUp" | "instances"> {
  readonly name: N
  /** Inputs; those without explicit names are `INPUT_1` and so on. */
  readonly inputs: I
  /** `OUTPUT_1` and so on. */
  readonly outputs: O
  /** As that of any model; its inputs have these names. */
  readonly batching?: BatchingOptions<Named<"INPUT", NoInfer<I>>>
  /** As those of any handler, but for layers. Default 1. */
  readonly instances?: number | ReadonlyArray<Omit<GroupOptions, "layer">>
  /** As that of any handler; its samples have these names. */
  readonly warmUp?: W
}

/** The service identifier of a bound model of this name. */
export interface Bound<N extends string> {
  readonly bound: N
}

/** The class of the model, with the layer that provides it. */
export interface BoundModel<N extends string, I extends Fields, O extends Fields, E, R> extends ModelClass<
  Bound<N>,
  N,
  I,
  O
> {
  readonly layer: Layer.Layer<Bound<N>, E, R>
}

/**
 * A model from a function of the tensors of a whole batch:
 *
 * ```ts
 * const Identity = Model.bind(
 *   { name: "Identity", inputs: [Tensor.FP32(1)], outputs: [Tensor.FP32(1)], maxBatchSize: 8 },
 *   Effect.succeed,
 * )
 * await Server.start([Identity], Identity.layer)
 * ```
 *
 * `make` is the handler, or an Effect that builds one, once per instance, in a scope that closes when the model
 * unloads.
 * @throws TypeError as `Model.Service` does, and where two tensors of a side have the same name
 */
export function bind<
  const N extends string,
  const I extends Positions,
  const O extends Positions,
  A = never,
  EMake = never,
  RMake = never,
  const W extends WarmUps<Named<"INPUT", I>> | undefined = undefined,
>(
  options: BindOptions<N, I, O, W>,
  make: CheckedBoundHandler<N, I, O, A, EMake, RMake>,
): BoundModel<
  N,
  Named<"INPUT", I>,
  Named<"OUTPUT", O>,
  EMake | WarmUpErrorOf<W>,
  Handler.Needs<RMake, RequirementsOf<A>, {}>
>
export function bind<
  const N extends string,
  const I extends Positions,
  const O extends Positions,
  E = never,
  R = never,
  EMake = never,
  RMake = never,
  const W extends WarmUps<Named<"INPUT", I>> | undefined = undefined,
>(
  { name, inputs, outputs, instances, keepsInputs, responseCache, warmUp, ...options }: BindOptions<N, I, O, W>,
  make: Make<BoundHandler<I, O, E, R>, EMake, RMake>,
): BoundModel<N, Named<"INPUT", I>, Named<"OUTPUT", O>, EMake | WarmUpErrorOf<W>, Handler.Needs<RMake, R, {}>> {
  const inputNames = names("INPUT", inputs)
  const outputNames = names("OUTPUT", outputs)
  // The type of each name is derived from its position, as in `names`.
  const inputFields = fields(name, inputNames, inputs) as Named<"INPUT", I>
  const outputFields = fields(name, outputNames, outputs) as Named<"OUTPUT", O>
  const model = Service<Bound<N>>()(name, { ...options, inputs: inputFields, outputs: outputFields })

  const byName =
    (handler: BoundHandler<I, O, E, R>) =>
    (tensors: Batched<Named<"INPUT", I>>, context: JoinedBatch<Named<"INPUT", I>>) => {
      const positional: unknown = inputNames.map((input): unknown => Reflect.get(tensors, input))
      return mapResult(
        handler(positional as Positional<I>, context),
        (returned) =>
          // Checked by the batch handler, which takes any object.
          record(outputNames, returned) as Batched<Named<"OUTPUT", O>>,
      )
    }
  const layer = uncheckedBatch(model, Effect.isEffect(make) ? Effect.map(make, byName) : byName(make), {
    ...(instances === undefined ? {} : { instances }),
    ...(keepsInputs === undefined ? {} : { keepsInputs }),
    ...(responseCache === undefined ? {} : { responseCache }),
    ...(warmUp === undefined ? {} : { warmUp }),
  })
  return Object.assign(model, { layer })
}

const names = (side: string, positions: Positions) =>
  positions.map((position, index) => (isNamed(position) ? position[0] : `${side}_${index + 1}`))

const fields = (model: string, names: ReadonlyArray<string>, positions: Positions): Fields => {
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw new TypeError(`Model "${model}": two tensors of one side have the name '${twice}'.`)
  return Object.fromEntries(
    positions.map((position, index) => [names[index] ?? "", isNamed(position) ? position[1] : position]),
  )
}

const isNamed = (position: Position): position is readonly [string, Field] => Array.isArray(position)

/** The returned tensors by name. Extra tensors get names by position, so that the output check reports them. */
const record = (names: ReadonlyArray<string>, returned: unknown): unknown =>
  Array.isArray(returned)
    ? Object.fromEntries(returned.map((tensor: unknown, index) => [names[index] ?? `OUTPUT_${index + 1}`, tensor]))
    : returned
