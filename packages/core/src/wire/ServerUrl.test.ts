import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { address, origin, parse, type Protocol } from "./ServerUrl.ts"

const parsed = (text: string, assumed?: Protocol) => Result.getOrThrow(parse(text, assumed))

it.each([
  ["grpc://models", "grpc", false, "models", 8001, ""],
  ["grpc://models:80/", "grpc", false, "models", 80, ""],
  ["grpcs://models", "grpc", true, "models", 443, ""],
  ["http://models", "http", false, "models", 8000, ""],
  ["http://models:80", "http", false, "models", 80, ""],
  ["https://models", "http", true, "models", 443, ""],
  ["https://models:8443/serving/", "http", true, "models", 8443, "/serving"],
  ["HTTP://127.0.0.1:9000", "http", false, "127.0.0.1", 9000, ""],
  ["grpc://[::1]:9001", "grpc", false, "::1", 9001, ""],
  ["localhost:8000", undefined, false, "localhost", 8000, ""],
  ["[::1]:8001", undefined, false, "::1", 8001, ""],
  ["gateway:8000/team/a/", "http", false, "gateway", 8000, "/team/a"],
])("%s", (url, protocol, secure, host, port, path) => {
  expect(parsed(url)).toEqual({ protocol, secure, host, port, path })
})

it.each<readonly [string, Protocol, object]>([
  ["localhost", "http", { protocol: "http", host: "localhost", port: 8000, secure: false, path: "" }],
  ["localhost", "grpc", { protocol: "grpc", port: 8001 }],
  ["models:9000", "http", { protocol: "http", host: "models", port: 9000 }],
  ["10.0.0.1:80", "http", { host: "10.0.0.1", port: 80 }],
  ["[::1]:9001", "grpc", { host: "::1", port: 9001 }],
  ["grpcs://models", "http", { protocol: "grpc", port: 443, secure: true }],
])("%s, where %s is assumed", (text, assumed, expected) => {
  expect(parsed(text, assumed)).toMatchObject(expected)
})

describe("an InvalidUrl says what came and what is allowed", () => {
  it.each([
    [
      "htp://x",
      '"htp://x" is not the URL of a model server: it may begin with grpc://, grpcs://, http:// or https://, not htp://',
    ],
    [
      "localhost",
      '"localhost" is not the URL of a model server: without a scheme it needs a port: grpc://localhost, http://localhost or localhost:8000',
    ],
    [":8000", '":8000" is not the URL of a model server: it has no host'],
    ["", "it has no host"],
    ["grpc://", "it has no host"],
    ["grpc://:8001", "it has no host"],
    ["grpc:models", "its host or port cannot be read"],
    ["grpc://models:port", "its host or port cannot be read"],
    ["my models:8000", "its host or port cannot be read"],
    ["grpc://models:99999", "its port is 99999, expected 1 to 65535"],
    ["models:0", "its port is 0, expected 1 to 65535"],
    ["grpc://models/v2", "gRPC has no path"],
    ["http://models?x=1", "it must not have a query or a fragment"],
    ["http://models/#x", "it must not have a query or a fragment"],
  ])("%s", (url, problem) => {
    expect(Result.getFailure(parse(url))).toMatchObject({
      _tag: "Some",
      value: { _tag: "InvalidUrl", url, message: expect.stringContaining(problem) },
    })
  })

  it.each([
    [
      "http://me:secret@models",
      '"http://…@models" is not the URL of a model server: credentials belong in a header, such as authorization',
    ],
    [
      "me:secret@models:8000",
      '"…@models:8000" is not the URL of a model server: credentials belong in a header, such as authorization',
    ],
  ])("%s, without the password", (url, message) => {
    expect(Result.getFailure(parse(url))).toMatchObject({ value: { message } })
  })
})

it("formats addresses and origins", () => {
  expect(address(parsed("grpc://[::1]:9001"))).toBe("[::1]:9001")
  expect(origin(parsed("https://models/serving"))).toBe("https://models:443")
  expect(origin(parsed("localhost:8000"))).toBe("http://localhost:8000")
})
