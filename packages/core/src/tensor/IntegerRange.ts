/** The values that integer datatypes of up to 32 bits hold. */

export interface IntegerRange {
  readonly min: number
  readonly max: number
}

export const integerRanges: {
  readonly [D in "INT8" | "INT16" | "INT32" | "UINT8" | "UINT16" | "UINT32"]: IntegerRange
} = {
  INT8: { min: -0x80, max: 0x7f },
  INT16: { min: -0x8000, max: 0x7fff },
  INT32: { min: -0x80000000, max: 0x7fffffff },
  UINT8: { min: 0, max: 0xff },
  UINT16: { min: 0, max: 0xffff },
  UINT32: { min: 0, max: 0xffffffff },
}

/** Describes the first element that the datatype does not hold, for an error; undefined if it holds all. */
export const outOfRange = (
  datatype: keyof typeof integerRanges,
  elements: ReadonlyArray<number>,
): string | undefined => {
  const { min, max } = integerRanges[datatype]
  const index = elements.findIndex((element) => element < min || element > max)
  return index < 0 ? undefined : `integer out of range: element ${index} is ${elements[index]}, expected ${datatype}`
}
