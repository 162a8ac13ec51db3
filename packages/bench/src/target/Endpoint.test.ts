import { expect, it } from "vitest"
import * as Endpoint from "./Endpoint.ts"

it.each<readonly [string, "grpc" | "http" | undefined, Partial<Endpoint.Endpoint>]>([
  ["localhost", undefined, { protocol: "http", host: "localhost", port: 8000, secure: false, path: "" }],
  ["localhost", "grpc", { protocol: "grpc", port: 8001 }],
  ["models:9000", undefined, { protocol: "http", host: "models", port: 9000 }],
  ["10.0.0.1:80", "http", { host: "10.0.0.1", port: 80 }],
  ["[::1]:9001", "grpc", { host: "::1", port: 9001 }],
  ["grpc://models", undefined, { protocol: "grpc", port: 8001, secure: false }],
  ["grpcs://models", "grpc", { protocol: "grpc", port: 443, secure: true }],
  ["HTTP://models:80/", undefined, { protocol: "http", port: 80, path: "" }],
  ["https://gateway/team/a/", undefined, { port: 443, secure: true, path: "/team/a" }],
])("%s, %s", (text, protocol, expected) => {
  expect(Endpoint.parse(text, protocol)).toMatchObject(expected)
})

it.each<readonly [string, "grpc" | "http" | undefined, string]>([
  ["ftp://models", undefined, "it may begin with grpc://"],
  ["http://models", "grpc", "grpc was asked for"],
  ["grpc://models/path", undefined, "gRPC has no path"],
  ["http://me:secret@models", undefined, "credentials belong into a header"],
  ["http://models?x=1", undefined, "must not have a query"],
  ["models:port", undefined, "its host or port cannot be read"],
  ["", undefined, "it has no host"],
])("%s is refused", (text, protocol, message) => {
  expect(() => Endpoint.parse(text, protocol)).toThrow(message)
})
