/**
 * docs/performance.md, whose parts between markers the benchmark writes: its cases and their results.
 */
import type { Entry, Published } from "./Published.ts"
import { verdict } from "./Results.ts"
import type { Case } from "./Case.ts"
import * as Table from "./Table.ts"

/** The page with its two parts as these cases and figures have them. */
export const render = (page: string, cases: ReadonlyArray<Case>, published: Published): string =>
  replace(replace(page, "cases", command, casesTable(cases)), "results", command, results(cases, published))

const command = "npm run bench -- --write"

/** The page with another text between the markers of this part, of which the first one names the command. */
export const replace = (page: string, part: string, command: string, text: string): string => {
  const [begin, end] = [`<!-- ${part}: written by \`${command}\` -->`, `<!-- end of ${part} -->`]
  const [before, rest, ...more] = page.split(begin)
  const [old, after, ...others] = rest?.split(end) ?? []
  if (before === undefined || old === undefined || after === undefined || more.length + others.length > 0) {
    throw new Error(`the page has to have ${begin} … ${end} once`)
  }
  return `${before}${begin}\n${text}\n${end}${after}`
}

const casesTable = (cases: ReadonlyArray<Case>): string =>
  Table.table(
    [
      ["case", "what", "beside"],
      ["---", "---", "---"],
    ],
    cases.map(({ name, description, baseline }) => [`\`${name}\``, description, baseline]),
  )

const results = (cases: ReadonlyArray<Case>, { machine, cases: entries }: Published): string => {
  const known = cases.flatMap((one) => {
    const entry = entries[one.name]
    return entry === undefined ? [] : [{ one, entry }]
  })
  if (known.length === 0) return "Nothing has been measured since the benchmark was last changed."
  const compared = known.filter(({ entry }) => entry.reached !== "")
  const listed = known.filter(({ entry }) => entry.reached === "")
  return [
    `On ${machine}.`,
    Table.table(
      [
        ["case", "target", "reached", "", "Nereid / baseline", "CPU µs/request", "p50, p99, p99.9 ms"],
        ["---", "---", "--:", "---", "--:", "--:", "--:"],
      ],
      compared.map(({ one: { name, target }, entry: { reached, met, figures, cpu, latency } }) => [
        `\`${name}\``,
        target,
        `**${reached}**`,
        verdict(met),
        figures.join("; "),
        cpu,
        latency ?? "",
      ]),
    ),
    ...listed.map(({ one, entry }) => `${one.description}:\n\n${entry.figures.map((line) => `- ${line}`).join("\n")}`),
    "How it was measured:",
    Table.table(
      [
        ["case", "busy %", "load busy %", "others", "errors", "measured"],
        ["---", "--:", "--:", "--:", "--:", "---"],
      ],
      known.map(({ one: { name }, entry }) => [`\`${name}\``, ...steadiness(entry)]),
    ),
  ].join("\n\n")
}

const steadiness = ({ busy, other, taken, errors, measured }: Entry): ReadonlyArray<string> => [
  busy,
  other,
  taken.toFixed(2),
  String(errors),
  measured,
]
