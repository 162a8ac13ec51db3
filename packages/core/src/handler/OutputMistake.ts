/**
 * A mistake in the outputs that a handler returns, or in its states, as a type: a text with the name of the output,
 * which the compiler prints in the last line of its message. Without it, an undeclared output is assignable, and a
 * wrong datatype or extent is reported without the output's name. Types only: model/SampleCodec.ts and
 * model/BatchedTensors.ts check the outputs at run time.
 */
import type { Shape, TypedTensor } from "../tensor/TypedTensor.ts"

/**
 * Unknown for sound outputs, and for a mistake that assignability reports well enough; otherwise a text for each
 * mistake. `Given` are the outputs in the return type `A`, whose bound is `Fits`. The conditions on keys and bound come
 * first: the compiler can decide them for a generic model that returns its own inputs, whose texts it cannot know.
 */
export type OutputMistake<N extends string, Expected, Given, A, Fits> = [KeysOf<Given>] extends [keyof Expected]
  ? [A] extends [Fits]
    ? unknown
    : Shown<Mistakes<"output", N, Expected, Given>>
  : Shown<Mistakes<"output", N, Expected, Given>>

export type KeysOf<Given> = Given extends unknown ? keyof Given : never

type Shown<Mistake> = [Mistake] extends [never] ? unknown : Mistake

/** The mistakes in each member of the union `Given`; never in `any` and `unknown`. `Noun` is what its fields are. */
export type Mistakes<Noun extends string, N extends string, Expected, Given> = Given extends unknown
  ? unknown extends Given
    ? never
    :
        | Undeclared<Noun, N, Exclude<keyof Given, keyof Expected>, Exclude<RequiredKeys<Expected>, keyof Given>>
        | Missing<Noun, N, Exclude<RequiredKeys<Expected>, keyof Given>, Exclude<keyof Given, keyof Expected>>
        | Wrong<Noun, N, Expected, Given>[keyof Expected & keyof Given]
  : never

/** `Absent` are the missing outputs, of which K is probably a misspelt one. */
type Undeclared<Noun extends string, N extends string, K extends PropertyKey, Absent extends PropertyKey> = K extends
  | string
  | number
  ? [Absent] extends [never]
    ? `${Noun} ${K} is not declared by model ${N}`
    : `${Noun} ${K} is not declared by model ${N}, whose ${Noun} ${Absent & string} is missing`
  : never

type Missing<Noun extends string, N extends string, K extends PropertyKey, Extra extends PropertyKey> = [
  Extra,
] extends [never]
  ? K extends string | number
    ? string extends K
      ? never
      : `${Noun} ${K} of model ${N} is missing`
    : never
  : never

type RequiredKeys<T> = { readonly [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T]

type Wrong<Noun extends string, N extends string, Expected, Given> = {
  readonly [K in keyof Expected & keyof Given]-?: [Given[K]] extends [Expected[K]]
    ? never
    : [Given[K], Expected[K]] extends [string, string]
      ? WrongLabel<Noun, N, K & string, Exclude<Given[K], Expected[K]>>
      : WrongKind<Noun, N, K & string, Kind<Expected[K]>, Kind<Given[K]>>
}

type WrongLabel<Noun extends string, N extends string, K extends string, Label> = Label extends string
  ? string extends Label
    ? `${Noun} ${K} of model ${N} is one of its labels, not any string`
    : `${Noun} ${K} of model ${N} has no label ${Label}`
  : never

type WrongKind<
  Noun extends string,
  N extends string,
  K extends string,
  Expected extends string,
  Given extends string,
> = [Given] extends [Expected] ? never : `${Noun} ${K} of model ${N} is ${Expected}, not ${Given}`

/** A tensor in the format of run-time messages: `FP32[-1,2]`. Not for objects, whose own message has more detail. */
type Kind<T> =
  T extends TypedTensor<infer D, infer S>
    ? `${D}[${Extents<S>}]`
    : T extends string
      ? "string"
      : T extends number
        ? "number"
        : T extends bigint
          ? "bigint"
          : T extends boolean
            ? "boolean"
            : never

type Extents<S extends Shape> = S extends readonly []
  ? ""
  : S extends readonly [infer First extends number]
    ? Extent<First>
    : S extends readonly [infer First extends number, ...infer Rest extends Shape]
      ? `${Extent<First>},${Extents<Rest>}`
      : "..."

type Extent<E extends number> = number extends E ? -1 : E
