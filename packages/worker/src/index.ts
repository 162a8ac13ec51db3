/** Public API: `Worker.layer` provides a model from a module that runs in worker threads. */
export * as Worker from "./Worker.ts"
export type { WorkerLoadError } from "./WorkerLoadError.ts"
