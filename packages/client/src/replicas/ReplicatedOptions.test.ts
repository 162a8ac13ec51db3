/** Options of replicas that are refused, and URLs of replicas. */
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import { type ReplicatedOptions, settings } from "./ReplicatedOptions.ts"

const list = ["grpc://a", "grpc://b"]

/** Options as a program in JavaScript may give them. */
const read = (replicas: object, url: ReplicatedOptions["url"] = list) =>
  Result.getOrThrow(settings({ url, replicas } as ReplicatedOptions))

it.each([
  [{ hedge: { after: 10 } }, "replicas.hedge requires replicas.idempotent: true, because both replicas may execute"],
  [{ idempotent: true, hedge: {} }, "replicas.hedge must have either after or percentile"],
  [{ idempotent: true, hedge: { after: 1, percentile: 95 } }, "replicas.hedge must have either after or percentile"],
  [{ idempotent: true, hedge: { percentile: 0.95 } }, "replicas.hedge.percentile must be from 50 to 99.9, but 0.95"],
  [
    { idempotent: true, hedge: { after: "soon" } },
    "replicas.hedge.after must be a duration of at least 1 ms, but soon",
  ],
  [{ idempotent: true, hedge: { after: 10 }, attempts: 1 }, "replicas.attempts is 1, which leaves no attempt"],
  [{ attempts: 0 }, "replicas.attempts must be an integer from 1 to 10, but 0 was given"],
  [{ connections: 65 }, "replicas.connections must be an integer from 1 to 64, but 65 was given"],
  [{ lookupInterval: "1 minute" }, "replicas.lookupInterval applies only to a name, such as dns:///models:8001"],
  [{ retries: 3 }, "replicas has no option 'retries', but connections, lookupInterval, attempts"],
  [{ retryBudget: { ratio: 2 } }, "replicas.retryBudget.ratio must be from 0.001 to 1, but 2 was given"],
  [{ retryBudget: { tokens: 0 } }, "replicas.retryBudget.tokens must be an integer from 1 to 10000, but 0 was given"],
  [{ health: { interval: 10 } }, "replicas.health.interval must be a duration of at least 100 ms, but 10 was given"],
  [{ ejection: { failures: 0 } }, "replicas.ejection.failures must be an integer from 1 to 1000, but 0 was given"],
  [{ ejection: { panicThreshold: 50 } }, "replicas.ejection.panicThreshold must be from 0 to 1, but 50 was given"],
  [{ ejection: { time: "2 minutes" } }, "replicas.ejection.time must not exceed replicas.ejection.maxTime"],
])("%j is refused", (replicas, problem) => {
  expect(() => read(replicas)).toThrow(TypeError)
  expect(() => read(replicas)).toThrow(problem)
})

it("several connections are refused over HTTP alone", () => {
  expect(() => read({ connections: 2 }, ["http://a", "https://b"])).toThrow(
    "replicas.connections applies only to gRPC. Over HTTP, calls open connections as they need them.",
  )
  expect(read({ connections: 2 }, ["http://a", "grpc://b"]).replicas?.connections).toBe(2)
})

it("has defaults", () => {
  expect(read({}).replicas).toEqual({
    targets: { _tag: "List", servers: list.map((url) => Result.getOrThrow(ServerUrl.parse(url))) },
    connections: 1,
    attempts: 3,
    idempotent: false,
    hedge: undefined,
    retryBudget: { tokens: 100, ratio: 0.1 },
    health: undefined,
    ejection: { failures: 5, time: 1_000, maxTime: 60_000, returnTime: 10_000 },
    panicThreshold: 0,
  })
  expect(read({ health: true }).replicas?.health).toEqual({ interval: 1_000, timeout: 1_000 })
})

it("a single URL has replicas only with options for them", () => {
  expect(Result.getOrThrow(settings({ url: "grpc://a" })).replicas).toBe(undefined)
  expect(read({ idempotent: true }, "grpc://a").replicas?.targets).toMatchObject({ servers: [{ host: "a" }] })
})

describe("a name", () => {
  it.each([
    ["dns:///models:9000", "grpc", false, "models", 9000, ""],
    ["dns:///models", "grpc", false, "models", 8001, ""],
    ["dns+grpc://models", "grpc", false, "models", 8001, ""],
    ["dns+grpcs://models", "grpc", true, "models", 443, ""],
    ["dns+http://models:80/team", "http", false, "models", 80, "/team"],
    ["DNS+https://models", "http", true, "models", 443, ""],
  ])("%s", (url, protocol, secure, host, port, path) => {
    const { replicas, endpoint } = read({ lookupInterval: "1 minute" }, url)
    expect(endpoint).toEqual({ protocol, secure, host, port, path })
    expect(replicas?.targets).toEqual({ _tag: "Name", server: endpoint, interval: 60_000 })
  })
})

it.each([
  [[], "The list of URLs is empty."],
  [["grpc://a", "grpc://a:8001"], '"grpc://a:8001" lists the server a:8001 a second time'],
  [["grpc://a", "dns:///models"], '"dns:///models" stands for all addresses of a name, and cannot be part of a list'],
  [["grpc://a", "htp://b"], '"htp://b" is not the URL of a model server: it may begin with grpc://'],
  [
    Array.from({ length: 1_001 }, (_, index) => `a${index}:1`),
    '"a0:1" is one of 1001 URLs, but a list has at most 1000',
  ],
  ["dns://8.8.8.8/models", '"dns://8.8.8.8/models" has no name where one is expected: write dns:///models:8001'],
  ["dns:models", "write dns:///models:8001, with three slashes"],
  ["dns:///", "write dns:///models:8001, with three slashes"],
  ["dns:///models/path", '"dns:///models/path" is not the name of model servers: gRPC has no path'],
  ["dns+ftp://models", "it may begin with grpc://, grpcs://, http:// or https://, not ftp://"],
])("%j is an InvalidUrl", (url, problem) => {
  const failure = Result.getOrThrow(Result.flip(settings({ url })))
  expect(failure).toBeInstanceOf(ServerUrl.InvalidUrl)
  expect(failure.message).toContain(problem)
})
