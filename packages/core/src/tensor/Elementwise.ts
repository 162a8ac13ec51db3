/**
 * Elementwise functions of tensors, for handlers, such as numpy's `a + b`, with its broadcasting. Nothing is cast: a
 * result beyond the range of the datatype is an error. Logits.ts has functions of several elements.
 */
import { type FixedDataType, byteWidth, view } from "./DataType.ts"
import type { Element } from "./Element.ts"
import { elementCount, make, type Shape, type TypedTensor } from "./TypedTensor.ts"

/** Datatypes with numeric elements: not BF16 (raw bits), BOOL and BYTES. */
export type NumericDataType = Exclude<FixedDataType, "BF16" | "BOOL">

/** Two extents at the end of each other: equal, or one of them is 1. */
type Extent<A extends number, B extends number> = number extends A
  ? number extends B
    ? number
    : B extends 1
      ? number
      : B
  : number extends B
    ? Extent<B, A>
    : A extends 1
      ? B
      : B extends 1 | A
        ? A
        : never

/** The broadcast shape of both; never if they are incompatible. */
export type Broadcast<A extends Shape, B extends Shape, Behind extends Shape = readonly []> = A extends readonly [
  ...infer OfA extends Shape,
  infer LastOfA extends number,
]
  ? B extends readonly [...infer OfB extends Shape, infer LastOfB extends number]
    ? [Extent<LastOfA, LastOfB>] extends [never]
      ? never
      : Broadcast<OfA, OfB, readonly [Extent<LastOfA, LastOfB>, ...Behind]>
    : B extends readonly []
      ? readonly [...A, ...Behind]
      : Shape
  : A extends readonly []
    ? readonly [...B, ...Behind]
    : Shape

/**
 * Applies `f` to each element.
 * @throws RangeError if the datatype cannot hold a result
 */
export const map = <D extends NumericDataType, S extends Shape>(
  tensor: TypedTensor<D, S>,
  f: (value: Element<D>) => Element<D>,
): TypedTensor<D, S> => {
  const [values, output] = [read(tensor), new OutputTensor(tensor.datatype, elementCount(tensor.shape))]
  for (let index = 0; index < values.length; index++) output.push(f(values[index] as Element<D>))
  return make(tensor.datatype, tensor.shape, output.data)
}

/**
 * Applies `f` to the elements of two tensors, position by position. Shapes broadcast as in numpy: from the last extent
 * on they are equal, or one is 1 or missing, and is repeated along the other.
 *
 * ```ts
 * Tensor.zipWith(a, b, (x, y) => x + y) // [3, 1] and [3, 5] are [3, 5]
 * ```
 * @throws RangeError if the shapes are incompatible, or the datatype cannot hold a result
 */
export const zipWith = <D extends NumericDataType, A extends Shape, B extends Shape>(
  one: TypedTensor<D, A>,
  other: TypedTensor<NoInfer<D>, B> & ([Broadcast<A, B>] extends [never] ? never : unknown),
  f: (one: Element<D>, other: Element<D>) => Element<D>,
): TypedTensor<D, Broadcast<A, B>> => {
  if (other.datatype !== one.datatype) {
    throw new RangeError(`Elements of ${one.datatype} and of ${other.datatype} are not of one kind.`)
  }
  const shape = broadcastShapes(one.shape, other.shape)
  const [left, right, output] = [read(one), read(other), new OutputTensor(one.datatype, elementCount(shape))]
  const [leftSteps, rightSteps] = [steps(one.shape, shape), steps(other.shape, shape)]
  const walk = (axis: number, atLeft: number, atRight: number): void => {
    const extent = shape[axis]
    if (extent === undefined) return output.push(f(left[atLeft] as Element<D>, right[atRight] as Element<D>))
    const [leftStep = 0, rightStep = 0] = [leftSteps[axis], rightSteps[axis]]
    for (let index = 0; index < extent; index++) walk(axis + 1, atLeft + index * leftStep, atRight + index * rightStep)
  }
  walk(0, 0, 0)
  // The types have put the shapes together by the same rule.
  return make(one.datatype, shape as Broadcast<A, B>, output.data)
}

/** The elements as typed arrays of numbers or bigints, by datatype. */
type Values<D extends NumericDataType> = { readonly length: number; [index: number]: Element<D> }

const read = <D extends NumericDataType>(tensor: TypedTensor<D>): Values<D> => tensor.data as unknown as Values<D>

/** Collects the output elements, and checks each. */
class OutputTensor<D extends NumericDataType> {
  readonly data: ReturnType<typeof view<D>>
  readonly #datatype: D
  readonly #values: Values<D>
  readonly #isExact: boolean
  #length = 0

  constructor(datatype: D, count: number) {
    this.#datatype = datatype
    this.data = view(datatype, new ArrayBuffer(count * (byteWidth(datatype) ?? 1)), 0, count)
    this.#values = this.data as unknown as Values<D>
    this.#isExact = !datatype.startsWith("FP")
  }

  push(value: Element<D>): void {
    this.#values[this.#length] = value
    if (this.#isExact && this.#values[this.#length] !== value) {
      throw new RangeError(`${value} is not a valid ${this.#datatype} element.`)
    }
    this.#length += 1
  }
}

const broadcastShapes = (one: Shape, other: Shape): Shape => {
  const rank = Math.max(one.length, other.length)
  return Array.from({ length: rank }, (_, axis) => {
    const [left = 1, right = 1] = [one[axis - rank + one.length], other[axis - rank + other.length]]
    if (left !== right && left !== 1 && right !== 1) {
      throw new RangeError(`Shapes [${one}] and [${other}] do not fit: ${left} and ${right} are neither equal nor 1.`)
    }
    return left === 1 ? right : left
  })
}

/** Strides of a tensor of `shape` along each axis of the broadcast shape; 0 along axes with one element. */
const steps = (shape: Shape, whole: Shape): ReadonlyArray<number> => {
  const ahead = whole.length - shape.length
  return whole.map((_, axis) => ((shape[axis - ahead] ?? 1) === 1 ? 0 : elementCount(shape.slice(axis - ahead + 1))))
}
