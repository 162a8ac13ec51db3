/** The order in which models are loaded: the models of an ensemble come before it, and cycles are refused. Pure. */

export interface LoadOrder {
  /** The models of a stage may be loaded at the same time, once all stages before it are over. */
  readonly stages: ReadonlyArray<ReadonlyArray<string>>
  /** Problems of ensembles that would contain themselves, by name. */
  readonly cycles: ReadonlyMap<string, string>
}

/** `needs`: the models of each ensemble to load; `loadedNeeds`: those of an ensemble that is loaded already. */
export const make = (
  needs: ReadonlyMap<string, ReadonlyArray<string>>,
  loadedNeeds: (name: string) => ReadonlyArray<string>,
): LoadOrder => {
  const needsOf = (name: string) => needs.get(name) ?? loadedNeeds(name)
  const cycles = new Map<string, string>()
  for (const name of needs.keys()) {
    const last = lastBefore(name, needsOf)
    if (last !== undefined) {
      cycles.set(name, `circular dependency between ensembles: ${name} -> ... -> ${last} -> ${name}`)
    }
  }
  const stages: Array<ReadonlyArray<string>> = []
  const left = new Set(needs.keys())
  while (left.size > 0) {
    const stage = [...left].filter((name) => cycles.has(name) || !needsOf(name).some((other) => left.has(other)))
    for (const name of stage) left.delete(name)
    stages.push(stage)
  }
  return { stages, cycles }
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

/** Returns the last model before `end` in a dependency cycle; undefined without a cycle. */
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
