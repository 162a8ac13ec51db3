/**
 * The check of a handler's return type against the model's outputs. Its result is a text that names the wrong output, for the
 * last line of the compiler's message: assignability accepts an undeclared output, and names the datatype or the extent of a
 * wrong tensor but not the output. Types only.
 */
import type { Shape, TypedTensor } from "../tensor/TypedTensor.ts"

/**
 * Unknown for sound outputs, and for mistakes that assignability reports as well; otherwise a text about each mistake. `Given`
 * are the outputs in the return type `A`, whose bound is `Fits`.
 *
 * The first two conditions hold for a generic model that returns its own sample, too, whose keys nobody knows yet.
 */
export type OutputCheck<N extends string, Expected, Given, A, Fits> = [KeysOf<Given>] extends [keyof Expected]
  ? [A] extends [Fits]
    ? unknown
    : Shown<OutputProblem<N, Expected, Given>>
  : Shown<OutputProblem<N, Expected, Given>>

type KeysOf<Given> = Given extends unknown ? keyof Given : never

type Shown<Problem> = [Problem] extends [never] ? unknown : Problem

/** The mistakes in each member of the union `Given`; never in `any` and `unknown`. */
type OutputProblem<N extends string, Expected, Given> = Given extends unknown
  ? unknown extends Given
    ? never
    :
        | Undeclared<N, Exclude<keyof Given, keyof Expected>, Exclude<RequiredKeys<Expected>, keyof Given>>
        | Missing<N, Exclude<RequiredKeys<Expected>, keyof Given>, Exclude<keyof Given, keyof Expected>>
        | Wrong<N, Expected, Given>[keyof Expected & keyof Given]
  : never

/** `Absent` are outputs that are missing: one of them is probably meant. */
type Undeclared<N extends string, K extends PropertyKey, Absent extends PropertyKey> = K extends string | number
  ? [Absent] extends [never]
    ? `output ${K} is not declared by model ${N}`
    : `output ${K} is not declared by model ${N}, whose output ${Absent & string} is missing`
  : never

type Missing<N extends string, K extends PropertyKey, Extra extends PropertyKey> = [Extra] extends [never]
  ? K extends string | number
    ? string extends K
      ? never
      : `output ${K} of model ${N} is missing`
    : never
  : never

type RequiredKeys<T> = { readonly [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T]

type Wrong<N extends string, Expected, Given> = {
  readonly [K in keyof Expected & keyof Given]-?: [Given[K]] extends [Expected[K]]
    ? never
    : [Given[K], Expected[K]] extends [string, string]
      ? WrongLabel<N, K & string, Exclude<Given[K], Expected[K]>>
      : WrongKind<N, K & string, Kind<Expected[K]>, Kind<Given[K]>>
}

type WrongLabel<N extends string, K extends string, Label> = Label extends string
  ? string extends Label
    ? `output ${K} of model ${N} is one of its labels, not any string`
    : `output ${K} of model ${N} has no label ${Label}`
  : never

type WrongKind<N extends string, K extends string, Expected extends string, Given extends string> = [Given] extends [
  Expected,
]
  ? never
  : `output ${K} of model ${N} is ${Expected}, not ${Given}`

/** A tensor as messages at run time print it: `FP32[-1,2]`. Never for objects, whose own message tells more. */
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
