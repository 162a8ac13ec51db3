/** What was computed of a text is remembered for the next time. Bounded; not for texts beyond a few hundred bytes. */

/** Longer texts are not remembered. */
const longest = 512

/** `compute`, of which the last results are kept: at most `most`, and all of them given up where one more would come. */
export const make = <A>(compute: (text: string) => A, most: number): ((text: string) => A) => {
  const known = new Map<string, A>()
  return (text) => {
    const found = known.get(text)
    if (found !== undefined) return found
    const made = compute(text)
    if (text.length > longest) return made
    if (known.size >= most) known.clear()
    known.set(text, made)
    return made
  }
}
