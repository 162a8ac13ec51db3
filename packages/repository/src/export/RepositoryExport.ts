/**
 * Exports models in code as a repository in Triton's layout. The export is pure: it names the files to copy, and
 * RepositoryFiles.ts writes everything.
 *
 *   <model>/config.pbtxt
 *          /<output>.labels.txt
 *          /warmup/…
 *          /<version>/model.onnx       a model from a file
 *                    /model.ts         a model in code: exports it from its own module
 */
import { toText } from "@bufbuild/protobuf/txtpb"
import { Result } from "effect"
import { dirname, isAbsolute, join, normalize } from "node:path"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import * as ExportedConfig from "./ExportedConfig.ts"

export interface RepositoryFile {
  /** Path relative to the repository, with slashes. */
  readonly path: string
  readonly content: string | Uint8Array | { readonly copyOf: string }
}

export interface ModelToExport {
  readonly definition: Definition<Fields, Fields>
  readonly running: RunningModel
  /**
   * Paths, relative to the model file, of the files that it needs, such as the weights of an .onnx file. Default: none.
   */
  readonly companions?: ReadonlyArray<string>
  /** Source of a module that exports the declaration and its layer, for a model in code. Default: no module. */
  readonly module?: string | undefined
}

export interface RepositoryExport {
  readonly files: ReadonlyArray<RepositoryFile>
  /** Notes on features of the models that the repository lacks, each with the model's name. */
  readonly notes: ReadonlyArray<string>
}

/** Exports all models. Fails with the first feature that a configuration cannot express. */
export const exportRepository = (models: ReadonlyArray<ModelToExport>): Result.Result<RepositoryExport, string> =>
  Result.map(Result.all(models.map(one)), (exports) => ({
    files: exports.flatMap(({ files }) => files),
    notes: exports.flatMap(({ notes }) => notes),
  }))

const one = ({
  definition,
  running,
  module,
  companions = [],
}: ModelToExport): Result.Result<RepositoryExport, string> => {
  const {
    description: { name, version },
  } = running
  const named = (text: string) => `model '${name}': ${text}`
  // Repositories ignore hidden directories.
  if (name.startsWith(".") || name.includes("\\")) return Result.fail(named("the name is not a valid directory name"))
  const outside = companions.find((file) => isAbsolute(file) || normalize(file).startsWith(".."))
  if (outside !== undefined)
    return Result.fail(named(`its weights file ${outside} is outside the directory of the model file`))
  const exported = ExportedConfig.make(definition, running)
  if (Result.isFailure(exported)) return Result.fail(named(exported.failure))
  const { config, files, notes } = exported.success
  const {
    description: { modelFile },
  } = running
  const model: ReadonlyArray<RepositoryFile> =
    modelFile !== undefined
      ? [
          { path: `${name}/${version}/model.onnx`, content: { copyOf: modelFile.path } },
          ...companions.map((file) => ({
            path: `${name}/${version}/${file}`,
            content: { copyOf: join(dirname(modelFile.path), file) },
          })),
        ]
      : module === undefined
        ? []
        : [{ path: `${name}/${version}/model.ts`, content: module }]
  const isBare = model.length === 0
  return Result.succeed({
    files: [
      { path: `${name}/config.pbtxt`, content: configText(config) },
      ...files.map(({ path, content }) => ({ path: `${name}/${path}`, content })),
      ...model,
    ],
    notes: [
      ...(isBare ? [named("only its configuration is exported, because its module is unknown")] : []),
      ...notes.map(named),
    ],
  })
}

/** The text format leaves out a `max_batch_size` of 0, which readers of the file would take for an omission. */
const configText = (config: ModelConfig): string => {
  const text = toText(ModelConfigSchema, config)
  return config.maxBatchSize > 0 ? text : text.replace(/^(?=(input|output): \{)/m, "max_batch_size: 0\n")
}
