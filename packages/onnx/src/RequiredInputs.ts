/**
 * Makes inputs with a constant in the .onnx file required. In ONNX, a run may override an input that has an
 * initializer. onnxruntime-node does not support that, so the initializer is removed. Workers load this module, so it
 * does not import Effect.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import { ModelProtoSchema } from "@nereid/protocol/onnx"

/** Returns the file without the values of these inputs. */
export const make = (bytes: Uint8Array, names: ReadonlyArray<string>): Uint8Array => {
  const model = fromBinary(ModelProtoSchema, bytes)
  const { graph } = model
  if (graph === undefined) return bytes
  const initializer = graph.initializer.filter(({ name }) => !names.includes(name))
  return toBinary(ModelProtoSchema, { ...model, graph: { ...graph, initializer } })
}
