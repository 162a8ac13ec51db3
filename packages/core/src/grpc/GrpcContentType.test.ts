import { expect, it } from "vitest"
import { isPlain } from "./GrpcContentType.ts"

it.each([
  ["application/grpc", true],
  ["application/grpc+proto", true],
  ["application/grpc; x=y", true],
  ["application/grpc-web", false],
  ["application/grpc+json", false],
  ["text/html", false],
  ["", false],
])("content-type '%s' is plain gRPC: %s", (type, expected) => {
  expect(isPlain(type)).toBe(expected)
})
