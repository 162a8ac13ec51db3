/** In which order models are loaded where some are made of others: what is needed comes first, and circles not at all. Pure. */

export interface LoadOrder {
  /** Those of a turn may be loaded at the same time, once all turns before it are over. */
  readonly turns: ReadonlyArray<ReadonlyArray<string>>
  /** Of models that would be made of themselves: what is wrong with them. */
  readonly circles: ReadonlyMap<string, string>
}

/** `needs`: of what is to be loaded; `others`: those of models that are loaded already. */
export const make = (
  needs: ReadonlyMap<string, ReadonlyArray<string>>,
  others: (name: string) => ReadonlyArray<string>,
): LoadOrder => {
  const needsOf = (name: string) => needs.get(name) ?? others(name)
  const circles = new Map<string, string>()
  for (const name of needs.keys()) {
    const last = lastBefore(name, needsOf)
    if (last !== undefined) {
      circles.set(name, `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`)
    }
  }
  const turns: Array<ReadonlyArray<string>> = []
  const left = new Set(needs.keys())
  while (left.size > 0) {
    const turn = [...left].filter((name) => circles.has(name) || !needsOf(name).some((other) => left.has(other)))
    for (const name of turn) left.delete(name)
    turns.push(turn)
  }
  return { turns, circles }
}

/** These, and all that they are made of. */
export const reached = (
  names: Iterable<string>,
  needs: (name: string) => ReadonlyArray<string>,
): ReadonlySet<string> => {
  const all = new Set(names)
  // A set hands out what is added while it is gone through.
  for (const name of all) for (const need of needs(name)) all.add(need)
  return all
}

/** Of the way from a model back to itself through what it is made of, the last one; undefined where there is none. */
const lastBefore = (end: string, needsOf: (name: string) => ReadonlyArray<string>): string | undefined => {
  const seen = new Set<string>()
  const ahead = [end]
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    const needs = needsOf(name)
    if (needs.includes(end)) return name
    for (const other of needs) {
      if (!seen.has(other)) ahead.push(other)
      seen.add(other)
    }
  }
  return undefined
}
