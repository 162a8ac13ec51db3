/**
 * External data files that an .onnx file refers to. SignatureCheck.test.ts and the tests of Onnx.layer cover its
 * signature.
 */
import { create, toBinary } from "@bufbuild/protobuf"
import {
  AttributeProtoSchema,
  FunctionProtoSchema,
  GraphProtoSchema,
  ModelProtoSchema,
  NodeProtoSchema,
  SparseTensorProtoSchema,
} from "@nereid/protocol/onnx"
import { expect, it } from "vitest"
import { external, initializer } from "../../../test/fixtures/onnx.ts"
import * as OnnxFile from "./OnnxFile.ts"

const weights = (file: string) => external(file, "FP32", [1], file)

const holding = (file: string) =>
  create(NodeProtoSchema, {
    opType: "Constant",
    attribute: [create(AttributeProtoSchema, { name: "value", t: weights(file) })],
  })

it("lists every external weight file once, wherever a tensor may be", () => {
  const branch = create(GraphProtoSchema, { initializer: [weights("branch")], node: [holding("nested/constant")] })
  const graph = create(GraphProtoSchema, {
    initializer: [weights("graph"), weights("graph"), initializer("here", "FP32", [1], Float32Array.of(1))],
    sparseInitializer: [create(SparseTensorProtoSchema, { values: weights("values"), indices: weights("indices") })],
    node: [
      holding("constant"),
      create(NodeProtoSchema, {
        opType: "If",
        attribute: [create(AttributeProtoSchema, { name: "then_branch", g: branch })],
      }),
    ],
  })
  const functions = [create(FunctionProtoSchema, { name: "f", node: [holding("function")] })]
  const bytes = toBinary(ModelProtoSchema, create(ModelProtoSchema, { irVersion: 8n, graph, functions }))
  expect(new Set(OnnxFile.externalFiles(bytes))).toEqual(
    new Set(["graph", "values", "indices", "constant", "branch", "nested/constant", "function"]),
  )
  expect(OnnxFile.externalFiles(bytes)).toHaveLength(7)
})
