/** Finds the known name closest to a misspelled one. */

/**
 * The one with the fewest letters added, taken away or changed, where these are few for its length; the first of
 * several.
 */
export const closest = (name: string, names: ReadonlyArray<string>): string | undefined => {
  const [best] = names
    .map((candidate) => ({ candidate, distance: distance(name, candidate) }))
    .filter(({ candidate, distance }) => distance <= Math.max(2, candidate.length / 4))
    .toSorted((one, other) => one.distance - other.distance)
  return best?.candidate
}

/** Levenshtein's, row by row. */
const distance = (from: string, to: string): number => {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [index, letter] of [...from].entries()) {
    const row = [index + 1]
    for (let column = 1; column <= to.length; column++) {
      const changed = (above[column - 1] ?? 0) + (letter === to[column - 1] ? 0 : 1)
      row.push(Math.min(changed, (above[column] ?? 0) + 1, (row[column - 1] ?? 0) + 1))
    }
    above = row
  }
  return above[to.length] ?? 0
}
