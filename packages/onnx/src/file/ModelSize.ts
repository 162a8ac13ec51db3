/**
 * Maximum size of an .onnx file, which is one protobuf message: no parser takes more. Weights may be in other files.
 */
export const maxModelBytes = 2 * 2 ** 30
