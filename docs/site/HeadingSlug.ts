/**
 * The anchor of a heading, as Git hosts form it, so that a link to a heading works on both. VitePress's own anchors
 * differ where a heading has punctuation.
 */
export const headingSlug = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-")

/** The anchors of a Markdown document, in order. Equal headings get the suffixes -1, -2 and so on. */
export const documentAnchors = (markdown: string): ReadonlyArray<string> => {
  const seen = new Map<string, number>()
  return headings(markdown).map((heading) => {
    const slug = headingSlug(heading)
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}

/** The first heading of a document as plain text; undefined without one. */
export const documentTitle = (markdown: string): string | undefined => headings(markdown)[0]?.replaceAll("`", "")

/** Texts of headings, with links reduced to their texts. Lines of code blocks are not headings. */
const headings = (markdown: string): ReadonlyArray<string> => {
  const prose = markdown.replaceAll(/^( *)```[^]*?^\1```/gm, "")
  return [...prose.matchAll(/^#{1,6} +(.+?) *#* *$/gm)].map(([, text = ""]) =>
    text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"),
  )
}
