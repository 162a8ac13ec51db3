/** First-order Markov chain: counts which words follow each word of a text. The model chooses among them. */
type Followers = [string, ...Array<string>]

export interface Bigrams {
  /** The first words of sentences. */
  readonly first: Readonly<Followers>
  /** Following words by word. A word that follows twice is listed twice, and is thus twice as likely. */
  readonly followers: ReadonlyMap<string, Readonly<Followers>>
}

/** Punctuation is part of its word. Throws at a text without words. */
export const learn = (text: string): Bigrams => {
  const [start, ...rest] = words(text)
  if (start === undefined) throw new Error("There is nothing to learn from a text without words")
  const first: Followers = [start]
  const followers = new Map<string, Followers>()
  let before = start
  for (const word of rest) {
    const known = endsSentence(before) ? first : followers.get(before)
    if (known === undefined) followers.set(before, [word])
    else known.push(word)
    before = word
  }
  return { first, followers }
}

/** Returns the words that may follow a text. After the last or an unknown word, a new sentence begins. */
export const after = ({ first, followers }: Bigrams, text: string): Readonly<Followers> =>
  followers.get(words(text).at(-1) ?? "") ?? first

export const endsSentence = (word: string): boolean => /[.!?]$/.test(word)

const words = (text: string): ReadonlyArray<string> => text.split(/\s+/).filter((word) => word !== "")
