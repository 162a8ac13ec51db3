/** What users import: `Repository.layer` serves the models of directories in Triton's layout. */
export * as Repository from "./Repository.ts"
