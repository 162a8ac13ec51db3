/** What users import: `Repository.layer` serves the models of directories in Triton's layout, and `ModelScript.define` types those in code. */
export * as ModelScript from "./ModelScript.ts"
export * as Repository from "./Repository.ts"
