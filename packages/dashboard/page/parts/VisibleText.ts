/**
 * Texts of models as they can be shown: control characters become visible, and those that change the direction of what
 * follows have no effect.
 */

/** Longest text that is shown, in characters. */
export const maxShown = 100_000

/** Controls but for tab and line ends, and the characters of Unicode that set directions or cannot be seen. */
const hidden = /(?![\t\n\r])[\p{Cc}\u061c\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu

export const visible = (text: string): string => text.replaceAll(hidden, shown)

const shown = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  // Unicode has pictures of the first controls.
  if (code < 0x20) return String.fromCodePoint(0x2400 + code)
  return code === 0x7f ? "\u2421" : `\\u${code.toString(16).padStart(4, "0")}`
}

/** The start of a long text, and how many characters are left out. */
export const clipped = (text: string): readonly [text: string, omitted: number] =>
  text.length <= maxShown ? [text, 0] : [text.slice(0, maxShown), text.length - maxShown]
