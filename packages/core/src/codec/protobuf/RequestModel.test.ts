import { create, toBinary } from "@bufbuild/protobuf"
import { ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { expect, it } from "vitest"
import * as RequestModel from "./RequestModel.ts"

const message = (fields: { modelName?: string; modelVersion?: string; id?: string }) =>
  toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, fields))

/** Reads the first bytes, behind a prefix that is not part of the message. */
const read = (bytes: Uint8Array, length = bytes.length) => {
  const framed = new Uint8Array(bytes.length + 5)
  framed.set(bytes, 5)
  return RequestModel.read(framed, 5, 5 + length)
}

it("is known with the first byte behind the name or the version", () => {
  const plain = message({ modelName: "digits", id: "1" })
  expect(read(plain)).toMatchObject({ name: "digits", version: "" })
  for (let length = 0; length <= 8; length++) expect(read(plain, length), String(length)).toBeUndefined()
  const versioned = message({ modelName: "digits", modelVersion: "23", id: "1" })
  expect(read(versioned)).toMatchObject({ name: "digits", version: "23" })
  for (let length = 0; length <= 11; length++) expect(read(versioned, length), String(length)).toBeUndefined()
  expect(read(versioned, 12)).toMatchObject({ name: "digits", version: "23" })
})

it("has an id once all of it has come, and none with the first byte of another field", () => {
  const id = (bytes: Uint8Array, length = bytes.length) => {
    const model = RequestModel.read(bytes, 0, length)
    return model && RequestModel.id(bytes, model, length)
  }
  for (const modelVersion of ["", "2"]) {
    const named = message({ modelName: "digits", modelVersion, id: "abc" })
    for (let length = 0; length < named.length; length++) expect(id(named, length), String(length)).toBeUndefined()
    expect(id(named)).toBe("abc")
    const other = Uint8Array.of(...message({ modelName: "digits", modelVersion }), 0x2a)
    expect(id(other.subarray(0, -1))).toBeUndefined()
    expect(id(other)).toBe("")
  }
})

it("is unknown if the message begins with anything else", () => {
  expect(read(message({}))).toBeUndefined()
  expect(read(message({ id: "1" }))).toBeUndefined()
  expect(read(Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f))).toBeUndefined()
  expect(read(Uint8Array.of(0x0a, 2, 0xff, 0xfe, 0x1a, 0))).toBeUndefined()
})
