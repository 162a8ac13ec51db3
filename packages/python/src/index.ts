/** Public API: `Python.layer` provides a model from Python code, which runs in separate processes. */
export * as Python from "./Python.ts"
export type { PythonLoadError } from "./process/PythonLoadError.ts"
