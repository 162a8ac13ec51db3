/** Constants of files, in every field that ONNX has for them. */
import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { TensorProto_DataLocation as Location, TensorProtoSchema } from "@nereid/protocol/onnx"
import type { DataType } from "@nereid/core/internal/tensor/DataType"
import { expect, it } from "vitest"
import * as FileValue from "./FileValue.ts"

const read = (datatype: DataType, constant: MessageInitShape<typeof TensorProtoSchema>) =>
  FileValue.tensor(create(TensorProtoSchema, { dims: [2n], ...constant }), datatype)

const text = (value: string) => new TextEncoder().encode(value)

it.each<readonly [DataType, MessageInitShape<typeof TensorProtoSchema>, ArrayLike<unknown>]>([
  ["FP32", { floatData: [1.5, -2] }, [1.5, -2]],
  ["FP64", { doubleData: [0.1, -2] }, [0.1, -2]],
  ["INT64", { int64Data: [-(2n ** 63n), 1n] }, [-(2n ** 63n), 1n]],
  ["UINT64", { uint64Data: [2n ** 64n - 1n, 1n] }, [2n ** 64n - 1n, 1n]],
  ["UINT32", { uint64Data: [2n ** 32n - 1n, 1n] }, [2 ** 32 - 1, 1]],
  ["INT32", { int32Data: [-7, 7] }, [-7, 7]],
  ["INT16", { int32Data: [-7, 7] }, [-7, 7]],
  ["UINT16", { int32Data: [65535, 7] }, [65535, 7]],
  ["INT8", { int32Data: [-7, 7] }, [-7, 7]],
  ["UINT8", { int32Data: [255, 7] }, [255, 7]],
  ["BOOL", { int32Data: [1, 0] }, [1, 0]],
  ["FP16", { int32Data: [0x3c00, 0xc000] }, [1, -2]],
  ["INT32", { rawData: new Uint8Array(Int32Array.of(3, 4).buffer) }, [3, 4]],
  ["BYTES", { stringData: [text("a"), text("")] }, [text("a"), text("")]],
])("%s in %o", (datatype, constant, expected) => {
  const found = read(datatype, constant)
  expect([
    found?.shape,
    [...(found?.data ?? [])].map((element) => (typeof element === "boolean" ? Number(element) : element)),
  ]).toEqual([[2], expected])
})

it("a value in another file, or with a wrong size, is undefined", () => {
  expect(read("FP32", { dataLocation: Location.EXTERNAL })).toBeUndefined()
  expect(read("FP32", { floatData: [1] })).toBeUndefined()
  expect(read("BYTES", { stringData: [] })).toBeUndefined()
})
