/** The table of the README that lists the size of an install, printed, read and compared. */

export interface Row {
  readonly title: string
  /** Number of packages, dependencies included. */
  readonly packages: number
  readonly megabytes: number
  /** Duration of `npm install`; not compared. */
  readonly seconds: number
}

/** Maximum difference between a documented and a measured size, as a fraction of the documented one. */
const tolerance = 0.1

const head = ["| install | packages | size | time |", "|---|--:|--:|--:|"]

/** The table without a final line break. */
export const print = (rows: ReadonlyArray<Row>): string =>
  [
    ...head,
    ...rows.map(
      ({ title, packages, megabytes, seconds }) => `| ${title} | ${packages} | ${megabytes} MB | ${seconds} s |`,
    ),
  ].join("\n")

const pattern = new RegExp(`${head.map((line) => RegExp.escape(line)).join("\n")}(?:\n\\|.*)*`)

/** @throws Error if the text has no such table */
export const replace = (text: string, rows: ReadonlyArray<Row>): string => {
  if (!pattern.test(text)) throw new Error(`There is no table that begins with ${head[0]}`)
  return text.replace(pattern, () => print(rows))
}

/** Returns a message for each row of the text that is missing, excess, or differs by more than the tolerance. */
export const differences = (text: string, rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const [table = ""] = pattern.exec(text) ?? []
  const documented = new Map(
    [...table.matchAll(/^\| (.+?) \| \d+ \| (\d+) MB \|/gm)].map(([, title, size]) => [title, Number(size)]),
  )
  const excess = [...documented.keys()].filter((title) => !rows.some((row) => row.title === title))
  return [
    ...rows.flatMap(({ title, megabytes }) => {
      const expected = documented.get(title)
      if (expected === undefined) return [`no row "${title}"`]
      const isClose = Math.abs(megabytes - expected) <= expected * tolerance
      return isClose ? [] : [`"${title}" has ${expected} MB, measured ${megabytes} MB`]
    }),
    ...excess.map((title) => `"${title}" is not measured`),
  ]
}
