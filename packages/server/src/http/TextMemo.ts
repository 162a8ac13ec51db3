/** Memoizes a function of a text. Bounded; not for texts beyond a few hundred bytes. */

/** Longer texts are not memoized. */
const maxTextLength = 512

/** Memoizes `compute`. Keeps at most `maxEntries` results, and drops all of them before it exceeds that. */
export const make = <A>(compute: (text: string) => A, maxEntries: number): ((text: string) => A) => {
  const memo = new Map<string, A>()
  return (text) => {
    const found = memo.get(text)
    if (found !== undefined) return found
    const computed = compute(text)
    if (text.length > maxTextLength) return computed
    if (memo.size >= maxEntries) memo.clear()
    memo.set(text, computed)
    return computed
  }
}
