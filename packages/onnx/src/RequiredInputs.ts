/**
 * An .onnx file some of whose constants are inputs that every run has to bring. ONNX lets a run bring another value for an
 * input that has one in the file; onnxruntime-node does not, so that nothing but its initializer may go. Effect is not
 * imported here, as workers load it.
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf"
import { ModelProtoSchema } from "@nereid/protocol/onnx"

/** The file without the values of these inputs. */
export const make = (bytes: Uint8Array, names: ReadonlyArray<string>): Uint8Array => {
  const model = fromBinary(ModelProtoSchema, bytes)
  const { graph } = model
  if (graph === undefined) return bytes
  const initializer = graph.initializer.filter(({ name }) => !names.includes(name))
  return toBinary(ModelProtoSchema, { ...model, graph: { ...graph, initializer } })
}
