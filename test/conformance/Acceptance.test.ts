/**
 * Every line of the acceptance list has a case or a test that names it; each test here lists a line's. Every claim
 * about repositories has one for each transport that it shows on, and no test names a claim that there is not.
 */
import { globSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { expect, it } from "vitest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { root } from "../Program.ts"
import { type Line, lines } from "./Acceptance.ts"
import type { GrpcCase, HttpCase, InferCase } from "./Case.ts"
import { binary } from "./cases/binary.ts"
import { datatypes } from "./cases/datatypes.ts"
import { ensembles, ensemblesGrpc, ensemblesHttp } from "./cases/ensembles.ts"
import { extensionsGrpc, extensionsHttp } from "./cases/extensions.ts"
import { generate } from "./cases/generate.ts"
import { guardedGrpc, guardedHttp } from "./cases/guarded.ts"
import { grpc } from "./cases/grpc.ts"
import { grpcFrames } from "./cases/grpcFrames.ts"
import { json } from "./cases/json.ts"
import { jsonElements } from "./cases/jsonElements.ts"
import { models } from "./cases/models.ts"
import { outputs } from "./cases/outputs.ts"
import { routes } from "./cases/routes.ts"
import { storedConfigsGrpc, storedConfigsHttp } from "./cases/storedConfigs.ts"
import { storedEnsemblesGrpc, storedEnsemblesHttp } from "./cases/storedEnsembles.ts"
import { storedModels } from "./cases/storedModels.ts"
import { storedStreams } from "./cases/storedAnswers.ts"
import { storedGrpc, storedHttp } from "./cases/storedRepository.ts"
import { storedScheduling, storedSchedulingGrpc, storedSchedulingHttp } from "./cases/storedScheduling.ts"
import { decoupledHttp, streams } from "./cases/streams.ts"
import { traceGrpc, traceHttp } from "./cases/trace.ts"
import { transport } from "./cases/transport.ts"
import { validation } from "./cases/validation.ts"
import { possible } from "./InferRequest.ts"
import { type Face, type RepositoryLine, repositoryLines } from "./RepositoryLines.ts"

const inferCases: ReadonlyArray<InferCase> = [
  ...datatypes,
  ...validation,
  ...models,
  ...storedModels,
  ...storedScheduling,
  ...ensembles,
  ...outputs,
]

const httpCases: ReadonlyArray<HttpCase> = [
  ...ensemblesHttp,
  ...storedHttp,
  ...storedConfigsHttp,
  ...storedEnsemblesHttp,
  ...storedSchedulingHttp,
  ...routes,
  ...json,
  ...jsonElements,
  ...binary,
  ...transport,
  ...decoupledHttp,
  ...extensionsHttp,
  ...guardedHttp,
  ...traceHttp,
  ...generate,
]

const grpcCases: ReadonlyArray<GrpcCase> = [
  ...ensemblesGrpc,
  ...storedGrpc,
  ...storedStreams,
  ...storedConfigsGrpc,
  ...storedEnsemblesGrpc,
  ...storedSchedulingGrpc,
  ...grpc,
  ...grpcFrames,
  ...streams,
  ...extensionsGrpc,
  ...guardedGrpc,
  ...traceGrpc,
]

const cases = [...inferCases, ...httpCases, ...grpcCases]

/** Test files by what they say; a line that one proves stands in a test's name or above it. */
const files = globSync(["packages/*/src/**/*.test.ts", "test/**/*.test.ts"], { cwd: root })
  .map((path) => [basename(path), readFileSync(`${root}/${path}`, "utf8")] as const)
  .filter(([name]) => name !== basename(import.meta.filename))

/** A percent-encoded byte is not a separator. */
const named = (line: Line): ReadonlyArray<string> => [
  ...cases.filter(({ proves }) => proves?.includes(line) === true).map(({ name }) => name),
  ...files.filter(([, text]) => new RegExp(`(?<![%\\w])${line}\\b`).test(text)).map(([name]) => name),
]

const isLine = (line: string): line is Line => Object.hasOwn(lines, line)

for (const line of Object.keys(lines).filter(isLine)) {
  const [first = "nothing yet", ...others] = named(line)
  const title = `${line}, ${lines[line]}: ${first}${others.length === 0 ? "" : ` and ${others.length} more`}`
  it(title, () => {
    expect(named(line).length).toBeGreaterThan(0)
  })
}

interface Proof {
  readonly line: string
  readonly face: Face
  readonly by: string
}

const overTransports = ["HTTP", "gRPC"] as const

const transportsOf = ({ request, as = possible(request) }: InferCase) =>
  overTransports.filter((transport) => as.some((encoding) => encoding.startsWith(transport)))

const proofs: ReadonlyArray<Proof> = [
  ...inferCases.flatMap((one) => transportsOf(one).map((face) => [one, face] as const)),
  ...httpCases.map((one) => [one, "HTTP"] as const),
  ...grpcCases.map((one) => [one, "gRPC"] as const),
]
  .flatMap(([{ name, proves = [] }, face]) => proves.map((line): Proof => ({ line, face, by: name })))
  .concat(
    files.flatMap(([name, text]) =>
      [...text.matchAll(/(?<![\w.])(A\d+\.[a-z\d.-]*[a-z\d])@(HTTP|gRPC|both|command)\b/g)].flatMap(
        ([, line = "", over]) => facesOf(over).map((face): Proof => ({ line, face, by: name })),
      ),
    ),
  )

function facesOf(over: string | undefined): ReadonlyArray<Face> {
  if (over === "both") return overTransports
  return over === "HTTP" || over === "gRPC" || over === "command" ? [over] : []
}

/** Where a claim shows and nothing proves it. */
const unproven = (name: string, { faces }: RepositoryLine): ReadonlyArray<Face> =>
  faces.filter((face) => !proofs.some((proof) => proof.line === name && proof.face === face))

for (const [name, line] of repositoryLines) {
  const title = `${name}, ${line.text}: ${new Set(proofs.filter((proof) => proof.line === name).map(({ by }) => by)).size} by name`
  it(title, () => {
    expect(unproven(name, line)).toEqual([])
  })
}

it("every label of a repository claim is defined and used", () => {
  const isKnown = ({ line, face }: Proof) =>
    /^C\d/.test(line) || repositoryLines.get(line)?.faces.includes(face) === true
  expect(proofs.filter((proof) => !isKnown(proof))).toEqual([])
})

it("C22: every RPC of the service has a case", () => {
  const called = [...grpc, ...grpcFrames, ...streams, ...extensionsGrpc, ...traceGrpc].map(
    ({ call: { method = "ModelInfer" } }) => method.split("/").at(-1),
  )
  const missing = GRPCInferenceService.methods.filter(({ name }) => !called.includes(name)).map(({ name }) => name)
  expect(missing).toEqual([])
})
