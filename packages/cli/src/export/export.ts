/**
 * `nereid export MODULE DIRECTORY`: the models of a module as a repository that `nereid serve --model-repository`
 * serves.
 */
import { readFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Console, Effect } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as OnnxFile from "@nereid/onnx/internal/OnnxFile"
import * as RepositoryExport from "@nereid/repository/internal/export/RepositoryExport"
import * as RepositoryFiles from "@nereid/repository/internal/export/RepositoryFiles"
import * as ExportFlags from "../flags/ExportFlags.ts"
import { inOneLine } from "../module/Failure.ts"
import * as ModelModule from "../module/ModelModule.ts"
import * as ExportedModule from "./ExportedModule.ts"
import * as ModuleText from "./ModuleText.ts"

export const exportModels = Command.make(
  "export",
  {
    module: Argument.String("module").pipe(
      Argument.withDescription("TypeScript or JavaScript module that exports models and their layers"),
    ),
    directory: Argument.String("directory").pipe(Argument.withDescription("Model repository to write to")),
    flags: ExportFlags.flags,
  },
  Effect.fnUntraced(
    function* ({ module: path, directory, flags }) {
      const refuse = (cause: string) => new CliError.UserError({ cause })
      const exported = yield* ModelModule.exported(resolve(path))
      const { models } = yield* ModelModule.read(path, exported)
      const names = models.map(({ definition }) => definition.name)
      const unknown = flags.exported.find((name) => !names.includes(name))
      if (unknown !== undefined) {
        return yield* refuse(
          `${path} exports no model '${unknown}', only ${names.map((name) => `'${name}'`).join(", ")}`,
        )
      }
      const built = yield* ExportedModule.build(exported, flags.exported)
      const sources = yield* Effect.forEach(built, ({ model: { definition }, running, names }) =>
        Effect.map(companions(running), (companions) => ({
          definition,
          running,
          companions,
          module: ModuleText.make(
            { path, names },
            join(directory, running.description.name, running.description.version),
          ),
        })),
      )
      const { files, notes } = yield* Effect.mapError(
        Effect.fromResult(RepositoryExport.exportRepository(sources)),
        refuse,
      )
      const written = yield* RepositoryFiles.write(directory, files, flags.overwrite)
      for (const file of files) {
        const isWritten = written.includes(file.path)
        yield* Console.log(`${isWritten ? "Wrote" : "Unchanged:"} ${join(directory, file.path)}`)
      }
      for (const note of notes) yield* Console.error(`Note: ${note}`)
      for (const { running, names, otherModels } of built) {
        if (otherModels.length === 0 || running.description.modelFile !== undefined) continue
        const otherNames = otherModels.map((other) => `'${other}'`).join(", ")
        yield* Console.error(
          `Note: model '${running.description.name}': its layer ${names[1]} also loads ${otherNames}`,
        )
      }
    },
    Effect.scoped,
    Effect.mapError(inOneLine),
  ),
).pipe(Command.withDescription("Write the models of a module as a model repository"))

/** The files that hold the weights of an .onnx file which does not hold them itself. */
const companions = ({ description: { modelFile } }: RunningModel): Effect.Effect<ReadonlyArray<string>> =>
  modelFile === undefined
    ? Effect.succeed([])
    : Effect.promise(async () => OnnxFile.externalFiles(await readFile(modelFile.path)))
