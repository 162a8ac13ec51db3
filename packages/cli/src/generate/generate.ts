/** `nereid generate SOURCE`: writes the contracts of existing models, or checks a written contract. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { Console, Effect } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import * as GenerateFlags from "../flags/GenerateFlags.ts"
import { GenerateError } from "./GenerateError.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export const generate = Command.make(
  "generate",
  {
    source: Argument.String("source").pipe(
      Argument.withDescription(
        "Model repository, directory of one model, .onnx file, or URL of a server (http://, https://, grpc:// or grpcs://)",
      ),
    ),
    flags: GenerateFlags.flags,
  },
  Effect.fnUntraced(
    function* ({ source, flags }) {
      const { output, check, text: asText } = flags
      if (check && output === undefined) {
        return yield* new GenerateError({ message: "--check requires --output, the file to compare" })
      }
      // Other commands do not need them.
      const ContractSource = yield* Effect.promise(() => import("./ContractSource.ts"))
      const ContractFile = yield* Effect.promise(() => import("@nereid/core/internal/contract/ContractFile"))
      const { contracts, isComplete, notes } = yield* ContractSource.read(source, flags)
      if (check && output !== undefined) {
        const ContractCheck = yield* Effect.promise(() => import("./ContractCheck.ts"))
        yield* ContractCheck.check(output, contracts, isComplete)
        return yield* Console.log(`${output} matches ${source}`)
      }
      for (const note of notes) yield* Console.error(`Note: ${note}`)
      const text = yield* Effect.mapError(
        Effect.fromResult(
          ContractFile.print(
            contracts.map(({ entry }) => entry),
            { text: asText },
          ),
        ),
        (message) => new GenerateError({ message }),
      )
      if (output === undefined) return yield* Effect.sync(() => process.stdout.write(text))
      const isNew = yield* Effect.try({
        try: () => write(output, text),
        catch: (error) =>
          new GenerateError({
            message: `cannot write ${output}: ${errorMessage(error)}`,
          }),
      })
      const names = contracts.map(({ entry }) => entry.contract.name).join(", ")
      return yield* Console.log(`${isNew ? "Wrote" : "Unchanged:"} ${output} (${names})`)
    },
    Effect.mapError((error) => new CliError.UserError({ cause: error })),
  ),
).pipe(Command.withDescription("Write the contracts of models in a repository, an .onnx file or a running server"))

/** Writes a changed file. Returns whether it was written; unchanged files do not trigger watchers. */
const write = (file: string, text: string): boolean => {
  if (contentOf(file) === text) return false
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return true
}

const contentOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}
