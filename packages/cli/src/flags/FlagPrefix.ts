/** Completes abbreviated flags, as tritonserver does: `--log-warn=false` is `--log-warning=false`. */
import { Result } from "effect"
import * as Variables from "./Variables.ts"

/** Flags that every command has. */
const builtIns = ["help", "version", "completions"]

/**
 * Replaces each unambiguous prefix of a flag by the flag. Fails with a message for a prefix of several flags. Leaves
 * unknown flags as they are.
 */
export const complete = (args: ReadonlyArray<string>, flags: unknown): Result.Result<ReadonlyArray<string>, string> => {
  const named = Variables.namedFlags(flags).flatMap(({ name, aliases }) => [name, ...aliases])
  const known = [...named, ...builtIns].filter((name) => name.length > 1)
  const completed: Array<string> = []
  for (const [index, arg] of args.entries()) {
    if (arg === "--") return Result.succeed([...completed, ...args.slice(index)])
    const [, prefix, rest = ""] = /^--([^=]+)(=[^]*)?$/.exec(arg) ?? []
    const possible =
      prefix === undefined || known.includes(prefix) ? [] : known.filter((name) => name.startsWith(prefix))
    if (possible.length > 1) {
      const names = possible.map((name) => `'--${name}'`).join(" ")
      return Result.fail(`option '${arg}' is ambiguous; possibilities: ${names}`)
    }
    const [name] = possible
    completed.push(name === undefined ? arg : `--${name}${rest}`)
  }
  return Result.succeed(completed)
}
