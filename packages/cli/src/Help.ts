/**
 * Help of a command, with its flags in groups. An invalid command line prints only its errors and how to get help,
 * because the long list of flags would hide them. A failed command prints its error in one line.
 */
import { Console, Layer, Option } from "effect"
import { CliOutput, type HelpDoc } from "effect/cli"
import type { Group } from "./flags/ServerFlags.ts"

const standard: CliOutput.Formatter = {
  ...CliOutput.defaultFormatter(),
  // A failure of the command itself, where the usage would not help.
  formatError: ({ message }) => `Error: ${message}`,
}

/** `commands`: for each that has groups of flags, those. */
export const layer = (commands: ReadonlyArray<ReadonlyArray<Group>>): Layer.Layer<never> =>
  Layer.merge(
    CliOutput.layer({ ...standard, formatHelpDoc: (doc) => formatHelp(doc, commands) }),
    CliOutput.layerPresenter({
      present: (event) => {
        if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
        const usage = `Usage: ${event.helpDoc.usage}`
        const help = `All flags: ${event.commandPath.join(" ")} --help`
        return Console.error([standard.formatErrors(event.errors), "", usage, help].join("\n"))
      },
    }),
  )

const formatHelp = (doc: HelpDoc.HelpDoc, commands: ReadonlyArray<ReadonlyArray<Group>>): string => {
  const sections = commands.flatMap((groups) => grouped(doc.flags, groups))
  if (sections.length === 0) return standard.formatHelpDoc(doc)
  const { globalFlags = [] } = doc
  const all = [...sections, { title: "Global flags", flags: globalFlags }]
  return [
    standard.formatHelpDoc({ ...doc, flags: [], globalFlags: [] }),
    ...all.map(({ title, flags }) => `${title.toUpperCase()}\n${rows(flags)}`),
  ].join("\n\n")
}

/** The flags by the groups that they stand in; nothing for a command that has others. */
export const grouped = (flags: ReadonlyArray<HelpDoc.FlagDoc>, groups: ReadonlyArray<Group>) => {
  const starts = groups.map(({ first }) => flags.findIndex(({ name }) => name === first))
  if (starts.includes(-1)) return []
  return groups.map(({ title }, index) => ({ title, flags: flags.slice(starts[index], starts[index + 1]) }))
}

const widest = 48

/** Aligns descriptions in one column, except for longer flags. */
const rows = (flags: ReadonlyArray<HelpDoc.FlagDoc>): string => {
  const heads = flags.map(({ name, aliases, type }) => `  ${[`--${name}`, ...aliases].join(", ")} ${type}  `)
  const column = Math.min(widest, Math.max(...heads.map((head) => head.length)))
  return flags
    .map(({ description }, index) => `${heads[index]?.padEnd(column)}${Option.getOrElse(description, () => "")}`)
    .join("\n")
}
