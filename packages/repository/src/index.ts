/**
 * Public API: `Repository.layer` serves directories of models in Triton's layout. `ModelScript.define` types a scripted
 * model. `exportRepository` generates the files of a repository from declared models.
 */
export * as ModelScript from "./script/ModelScript.ts"
export * as Repository from "./Repository.ts"
export { exportRepository } from "./export/RepositoryExport.ts"
