/** The order of an ensemble's steps: each stands in the first column in which all of its inputs are there. */
import type { EnsembleStep } from "../api/Protocol.ts"

export const columns = (
  steps: ReadonlyArray<EnsembleStep>,
  inputs: ReadonlyArray<string>,
): ReadonlyArray<ReadonlyArray<EnsembleStep>> => {
  const known = new Set(inputs)
  const result: Array<ReadonlyArray<EnsembleStep>> = []
  let left = steps
  while (left.length > 0) {
    const next = left.filter(({ input_map: map }) => Object.values(map).every((tensor) => known.has(tensor)))
    // A graph that the server has accepted has an order; another is shown as it is.
    const column = next.length === 0 ? left : next
    result.push(column)
    for (const { output_map: map } of column) for (const tensor of Object.values(map)) known.add(tensor)
    left = left.filter((step) => !column.includes(step))
  }
  return result
}
