/**
 * What users import: `Repository.layer` serves the models of directories in Triton's layout, `ModelScript.define` types those in
 * code, and `exportRepository` tells the files of such a directory for models that are declared.
 */
export * as ModelScript from "./script/ModelScript.ts"
export * as Repository from "./Repository.ts"
export { exportRepository } from "./export/RepositoryExport.ts"
