/** The Markdown of a page: that of its document, with links for the site, and without templates of Vue. */
import * as SiteLink from "./SiteLink.ts"

/** A code block, or a code span: neither has links. */
const code = /(^( *)```[^]*?^\2```|`[^`\n]+`)/gm

export const stagedPage = (
  markdown: string,
  document: { readonly source: string; readonly page: string },
  targets: SiteLink.Targets,
): string =>
  outsideCode(markdown, (prose) =>
    prose.replaceAll("{{", "&#123;&#123;").replaceAll(/<(?!https?:)/g, "&lt;"),
  ).replaceAll(
    // A text may contain code, so links and code are found together, whichever begins first.
    /^( *)```[^]*?^\1```|(!?)\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]+)\)|`[^`\n]+`/gm,
    (whole: string, _indent, image: string, text: string | undefined, link: string) => {
      if (text === undefined) return whole
      const target = SiteLink.siteLink(link, document, targets)
      return target === undefined ? unlinked(text, link) : `${image}[${text}](${target})`
    },
  )

/** The text of a link that the site cannot follow, with the path of the file if the text does not name it. */
const unlinked = (text: string, link: string): string => {
  const path = link.replace(/^(?:\.\.?\/)+/, "").replace(/#.*/, "")
  const plain = text.replaceAll("`", "")
  return path.endsWith(plain) ? `\`${path}\`` : `${text} (\`${path}\`)`
}

const outsideCode = (markdown: string, replace: (prose: string) => string): string => {
  let end = 0
  let text = ""
  for (const match of markdown.matchAll(code)) {
    text += replace(markdown.slice(end, match.index)) + match[0]
    end = match.index + match[0].length
  }
  return text + replace(markdown.slice(end))
}

/** Files as sections with a heading and a code block each. */
export const sourceSections = (files: ReadonlyArray<{ readonly name: string; readonly text: string }>): string =>
  files.map(({ name, text }) => `\n## ${name}\n\n${fenced(name, text)}\n`).join("")

/** With a fence that is longer than any in the text. */
const fenced = (name: string, text: string): string => {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((ticks) => ticks.length))
  const fence = "`".repeat(longest + 1)
  const language = name.endsWith(".proto") ? "proto" : name.slice(name.lastIndexOf(".") + 1)
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`
}
