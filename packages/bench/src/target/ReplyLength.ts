/** The length of a reply, compared with that of the trial request. */

/** The problem of a reply with `length` bytes; undefined if that is as expected, or any length is. */
export const problem = (length: number, expected: number | undefined): string | undefined =>
  expected === undefined || length === expected ? undefined : `the response has ${length} bytes, expected ${expected}`
