/** Public API: `Onnx.layer` provides a model from an .onnx file. */
export * as Onnx from "./Onnx.ts"
export type { OnnxLoadError } from "./OnnxLoadError.ts"
