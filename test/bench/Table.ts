/** Markdown, padded so that it reads as a table in a terminal too. */
type Cells = ReadonlyArray<string>

/** `head` is the titles, and the line below them. */
export const table = (head: readonly [Cells, Cells], rows: ReadonlyArray<Cells>): string => {
  const all = [...head, ...rows]
  const widths = head[0].map((_, column) => Math.max(...all.map((cells) => cells[column]?.length ?? 0)))
  return all
    .map((cells) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`)
    .join("\n")
}
