/** The guide of the command line, held against the help. */
import { expect, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { CliOutput, Command, type HelpDoc } from "effect/cli"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "../NodeServices.ts"
import * as Help from "../Help.ts"
import * as BenchFlags from "./BenchFlags.ts"
import * as ExportFlags from "./ExportFlags.ts"
import * as GenerateFlags from "./GenerateFlags.ts"
import * as InitFlags from "./InitFlags.ts"
import * as ServerFlags from "./ServerFlags.ts"

/** The flags of a command, as its help has them. */
const flagsOf = <N extends string, I, C>(command: Command.Command<N, I, C, never, never>) =>
  Effect.gen(function* () {
    const flags: Array<HelpDoc.FlagDoc> = []
    const presenter = CliOutput.layerPresenter({
      present: (event) =>
        Effect.sync(() => {
          if (event._tag === "Help") flags.push(...event.helpDoc.flags)
        }),
    })
    yield* Command.runWith(command, { version: "0" })(["--help"]).pipe(
      Effect.ignore,
      Effect.provide(Layer.merge(NodeServices.layer, presenter)),
    )
    return flags
  })

const tables = (flags: ReadonlyArray<HelpDoc.FlagDoc>, groups: ReadonlyArray<ServerFlags.Group>): string => {
  const grouped = Help.grouped(flags, groups)
  expect(grouped).toHaveLength(groups.length)
  return grouped
    .map(({ title, flags }) => {
      const rows = flags.map(({ name, aliases, type, description }) => {
        const names = [`--${name}`, ...aliases].map((each) => `\`${each}\``).join(", ")
        const cells = [names, type, Option.getOrElse(description, () => "")]
        return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`
      })
      return `## ${title}\n\n| flag | value | |\n|---|---|---|\n${rows.join("")}`
    })
    .join("\n")
}

/** Returns the hand-written text before the first table of a command. */
const between = (page: string, from: string, groups: ReadonlyArray<ServerFlags.Group>): string => {
  const start = page.indexOf(from)
  expect(start, from).toBeGreaterThanOrEqual(0)
  const end = page.indexOf(`## ${groups[0]?.title}\n`, start)
  expect(end, groups[0]?.title).toBeGreaterThan(start)
  return page.slice(start, end)
}

it.effect("docs/guides/command-line.md lists all flags, as the help does; `vitest -u` writes them there", () =>
  Effect.gen(function* () {
    const path = join(import.meta.dirname, "../../../../docs/guides/command-line.md")
    const page = readFileSync(path, "utf8")
    const serve = yield* flagsOf(Command.make("serve", { flags: ServerFlags.flags }, () => Effect.void))
    const generate = yield* flagsOf(Command.make("generate", { flags: GenerateFlags.flags }, () => Effect.void))
    const exported = yield* flagsOf(Command.make("export", { flags: ExportFlags.flags }, () => Effect.void))
    const bench = yield* flagsOf(Command.make("bench", { flags: BenchFlags.flags }, () => Effect.void))
    const init = yield* flagsOf(Command.make("init", { flags: InitFlags.flags }, () => Effect.void))
    const whole = [
      between(page, "# The command line\n", ServerFlags.groups),
      tables(serve, ServerFlags.groups),
      "\n",
      between(page, "# `nereid generate`\n", GenerateFlags.groups),
      tables(generate, GenerateFlags.groups),
      "\n",
      between(page, "# `nereid export`\n", ExportFlags.groups),
      tables(exported, ExportFlags.groups),
      "\n",
      between(page, "# `nereid bench`\n", BenchFlags.groups),
      tables(bench, BenchFlags.groups),
      "\n",
      between(page, "# `nereid init`\n", InitFlags.groups),
      tables(init, InitFlags.groups),
    ]
    yield* Effect.promise(() => expect(whole.join("")).toMatchFileSnapshot(path))
  }),
)
