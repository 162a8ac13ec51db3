/** Flags of the programs of this folder: `--help` lists them, and an unknown one is refused in one line. */
import { parseArgs, type ParseArgsOptionDescriptor } from "node:util"

interface Flag extends ParseArgsOptionDescriptor {
  readonly description: string
}

const line = ([name, { type, description, default: value }]: [string, Flag]): string => {
  const shown = type === "string" ? `--${name}=…` : `--${name}`
  return `  ${shown.padEnd(18)}${description}${typeof value === "string" && value !== "" ? ` Default ${value}.` : ""}`
}

/** The values of the flags of this process. Ends it for `--help`, and with 2 for flags that it does not have. */
export const read = <const Flags extends { readonly [name: string]: Flag }>(usage: string, flags: Flags) => {
  const help = [usage, "", ...Object.entries(flags).map(line)].join("\n")
  if (process.argv.includes("--help")) {
    console.log(help)
    process.exit(0)
  }
  try {
    return parseArgs({ options: flags }).values
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${help}`)
    process.exit(2)
  }
}
