/** Which objects of a model a load needs: its own files, and those of the versions that will be loaded. Pure. */
import { configFile } from "../directory/ModelDirectory.ts"
import * as ModelTree from "./ModelTree.ts"

/** Path of the configuration of a model, as ModelDirectory.read finds it; undefined without one. */
export const configOf = ({ files }: ModelTree.ModelObjects, configName: string | undefined): string | undefined => {
  const named = configName === undefined ? undefined : `configs/${configName}.pbtxt`
  return [named, configFile].find((path) => path !== undefined && files.has(path))
}

export const select = (model: ModelTree.ModelObjects, versions: ReadonlyArray<number>): ReadonlyArray<string> => {
  const paths = [...model.files.keys()].filter((path) => {
    const version = ModelTree.versionOf(path)
    return version === undefined || versions.includes(version)
  })
  return ModelTree.versionsOf(model).length > 0 ? paths : withoutVariants(model, paths)
}

/**
 * Without versions, a directory with model.onnx is a model, and other ONNX files beside it are variants that nobody
 * loads, with their weights: `model_fp16.onnx`, `model_fp16.onnx_data`.
 */
const withoutVariants = ({ files }: ModelTree.ModelObjects, paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (!files.has("model.onnx")) return paths
  const variants = paths.filter((path) => /^[^/]+\.onnx$/.test(path) && path !== "model.onnx")
  return paths.filter((path) => !variants.some((variant) => path.startsWith(variant)))
}
