import { expect, it } from "vitest"
import { parse } from "./Endpoint.ts"

it.each([
  ["grpc://models", "grpc", false, "models", 8001, ""],
  ["grpc://models:80/", "grpc", false, "models", 80, ""],
  ["grpcs://models", "grpc", true, "models", 443, ""],
  ["http://models", "http", false, "models", 8000, ""],
  ["http://models:80", "http", false, "models", 80, ""],
  ["https://models", "http", true, "models", 443, ""],
  ["https://models:8443/serving/", "http", true, "models", 8443, "/serving"],
  ["HTTP://127.0.0.1:9000", "http", false, "127.0.0.1", 9000, ""],
  ["grpc://[::1]:9001", "grpc", false, "[::1]", 9001, ""],
])("%s", (url, protocol, secure, hostname, port, path) => {
  expect(parse(url)).toEqual({ protocol, secure, hostname, port, path })
})

it.each([
  ["models:8001", "must begin with grpc://"],
  ["", "must begin with grpc://"],
  ["ftp://models", "not ftp://"],
  ["grpc:models", "must begin with grpc://"],
  ["grpc://", "has no host"],
  ["grpc://:8001", "cannot be read"],
  ["grpc://models:port", "cannot be read"],
  ["grpc://models:65536", "cannot be read"],
  ["grpc://models:0", "no server has port 0"],
  ["grpc://models/v2", "gRPC has no path"],
  ["http://me:secret@models", "option `headers`"],
  ["http://models?x=1", "query"],
  ["http://models/#x", "fragment"],
])("%s is refused", (url, problem) => {
  expect(() => parse(url)).toThrow(TypeError)
  expect(() => parse(url)).toThrow(problem)
})
