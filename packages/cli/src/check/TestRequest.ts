/** The inputs of the test request, two rows of a sum and a difference, and the check of its outputs. */

/** Rows of one element. */
export const testInputs = { a: [1, 1], b: [1, 1] }

export interface TestOutputs {
  readonly add: ReadonlyArray<number>
  readonly sub: ReadonlyArray<number>
}

export const isExpected = ({ add, sub }: TestOutputs): boolean => String(add) === "2,2" && String(sub) === "0,0"

export const print = ({ add, sub }: TestOutputs): string => `add ${rows(add)}, sub ${rows(sub)}`

const rows = (elements: ReadonlyArray<number>) => `[${elements.map((element) => `[${element}]`).join(",")}]`
