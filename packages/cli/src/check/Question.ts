/** What all that computes is asked here, two rows of a sum and a difference, and the answer to it. */

/** Rows of one element. */
export const question = { a: [1, 1], b: [1, 1] }

export interface Answer {
  readonly add: ReadonlyArray<number>
  readonly sub: ReadonlyArray<number>
}

export const expected = ({ add, sub }: Answer): boolean => String(add) === "2,2" && String(sub) === "0,0"

export const print = ({ add, sub }: Answer): string => `add ${rows(add)}, sub ${rows(sub)}`

const rows = (elements: ReadonlyArray<number>) => `[${elements.map((element) => `[${element}]`).join(",")}]`
