/** Tokens of the decoder: the characters that it was trained on. training/corpus.py has the same list. */
export const characters = "\n ,.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The token before and after each story. */
export const boundary = 0

/** The tokens of a text; undefined if it has other characters. */
export const tokens = (text: string): ReadonlyArray<number> | undefined => {
  const all = Array.from(text, (character) => characters.indexOf(character))
  return all.includes(-1) ? undefined : all
}

export const character = (token: number): string => characters.charAt(token)
