/** The index of a repository with its states and reasons, as both protocols show it. */
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { type Claim, type GrpcCase, type HttpCase, http, rpc } from "../Case.ts"
import { versionOf } from "../BrokenModel.ts"
import { broken } from "../StoredRefusals.ts"
import { escaped, on, part } from "./stored.ts"

const { method } = GRPCInferenceService

/** A reason as it stands in the JSON of the index, which escapes its quotes. */
const reasonPart = (reason: string | RegExp): string =>
  reason instanceof RegExp ? reason.source : escaped(JSON.stringify(reason).slice(1, -1))

const index = (name: string, body: string, expected: RegExp, ...proves: ReadonlyArray<Claim>): HttpCase =>
  http(name, { path: "/v2/repository/index", body }, { status: 200, body: expected }, on("C32", ...proves))

const indexGrpc = (name: string, ready: boolean, expected: RegExp, ...proves: ReadonlyArray<Claim>): GrpcCase =>
  rpc(name, method.repositoryIndex, { ready }, { code: 0, replies: [expected] }, on("C32", ...proves))

const readyEntry = part('{"name":"fixed","version":"1","state":"READY","reason":""}')
const readyMessage = part('{"name":"fixed","version":"1","state":"READY"}')

/** For an unavailable model; `reason` is a part of the reason in the index. */
const brokenEntry = (name: string, found: (typeof broken)[string]): RegExp => {
  const version = versionOf(found)
  const head = `{"name":"${name}",${version === undefined ? "" : `"version":"${version}",`}"state":"UNAVAILABLE","reason":"`
  return new RegExp(`${escaped(head)}[^}]*(${reasonPart(found.reason)})`)
}

export const storedIndexHttp: ReadonlyArray<HttpCase> = [
  index("a model that is loaded", "", readyEntry, "A1.index.all", "A1.index.ready-state", "A1.index.empty-body"),
  index(
    "every version of it",
    "{}",
    /"specific","version":"1","state":"READY","reason":""\},\{"name":"specific","version":"3"/,
    "A1.index.all",
  ),
  index("a model that has never been loaded is its name", "", part('{"name":"idle"}'), "A1.index.never-loaded"),
  index(
    "what is ready and nothing else",
    '{"ready":true}',
    /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/,
    "A1.index.ready",
  ),
  index("with false, all", '{"ready":false}', part('{"name":"idle"}')),
  index(
    "an ensemble and its models",
    "",
    /"name":"bare","version":"1","state":"READY".*"name":"in_steps","version":"1","state":"READY"/,
    "A6.ensemble.index",
  ),
  ...Object.entries(broken).map(([name, found]) =>
    index(
      `${name} is not, and says why`,
      "",
      brokenEntry(name, found),
      "A1.index.unavailable",
      ...(found.proves ?? []),
    ),
  ),
  ...['"yes"', "1", "null", "[]"].map((ready) =>
    http(
      `ready is no ${ready}`,
      { path: "/v2/repository/index", body: `{"ready":${ready}}` },
      { status: 400, error: "Invalid value for 'ready': expected a boolean" },
      on("C32", "A1.index.ready-type"),
    ),
  ),
  http(
    "the index of a repository by name",
    { path: "/v2/repository/r/index", body: "" },
    { status: 501, error: "'repository_name' specification is not supported" },
    on("C32", "A1.repository-name"),
  ),
  http(
    "with a model that cannot be loaded it is not ready",
    { path: "/v2/health/ready" },
    { status: 400, body: "" },
    on("C1", "A6.readiness.strict"),
  ),
]

export const storedIndexGrpc: ReadonlyArray<GrpcCase> = [
  indexGrpc("a model that is loaded", false, readyMessage, "A1.index.all", "A1.index.ready-state"),
  indexGrpc("a model that has never been loaded is its name", false, part('{"name":"idle"}'), "A1.index.never-loaded"),
  indexGrpc("what is ready and nothing else", true, /^(?!.*"idle")(?!.*UNAVAILABLE).*"name":"fixed"/, "A1.index.ready"),
  indexGrpc(
    "an ensemble and its models",
    false,
    /"name":"bare","version":"1","state":"READY".*"name":"in_steps","version":"1","state":"READY"/,
    "A6.ensemble.index",
  ),
  ...Object.entries(broken).map(([name, found]) =>
    indexGrpc(
      `${name} is not, and says why`,
      false,
      brokenEntry(name, found),
      "A1.index.unavailable",
      ...(found.proves ?? []),
    ),
  ),
  rpc(
    "of a repository by name",
    method.repositoryIndex,
    { repositoryName: "r" },
    { code: GrpcCode.UNIMPLEMENTED, message: "'repository_name' specification is not supported" },
    on("C32", "A1.repository-name"),
  ),
  rpc(
    "with a model that cannot be loaded it is not",
    method.serverReady,
    {},
    { code: 0, replies: ["{}"] },
    on("C1", "A6.readiness.strict"),
  ),
]
