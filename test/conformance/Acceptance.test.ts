/** Every line of the acceptance list has a case or a test that names it; each test here lists a line's. */
import { globSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { expect, it } from "vitest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { root } from "../Program.ts"
import { type Line, lines } from "./Acceptance.ts"
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
import { storedModels } from "./cases/storedModels.ts"
import { storedGrpc, storedHttp } from "./cases/storedRepository.ts"
import { decoupledHttp, streams } from "./cases/streams.ts"
import { traceGrpc, traceHttp } from "./cases/trace.ts"
import { transport } from "./cases/transport.ts"
import { validation } from "./cases/validation.ts"

const cases = [
  ...datatypes,
  ...validation,
  ...models,
  ...storedModels,
  ...ensembles,
  ...ensemblesHttp,
  ...ensemblesGrpc,
  ...storedHttp,
  ...storedGrpc,
  ...outputs,
  ...routes,
  ...json,
  ...jsonElements,
  ...binary,
  ...transport,
  ...grpc,
  ...grpcFrames,
  ...streams,
  ...decoupledHttp,
  ...extensionsHttp,
  ...extensionsGrpc,
  ...guardedHttp,
  ...guardedGrpc,
  ...traceHttp,
  ...generate,
  ...traceGrpc,
]

/** Test files by what they say; a line that one proves stands in a test's name or above it. */
const files = globSync(["packages/*/src/**/*.test.ts", "test/**/*.test.ts"], { cwd: root })
  .map((path) => [basename(path), readFileSync(`${root}/${path}`, "utf8")] as const)
  .filter(([name]) => name !== basename(import.meta.filename))

/** A percent-encoded byte is none. */
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

it("C22: every RPC of the service has a case", () => {
  const called = [...grpc, ...grpcFrames, ...streams, ...extensionsGrpc, ...traceGrpc].map(
    ({ call: { method = "ModelInfer" } }) => method.split("/").at(-1),
  )
  const missing = GRPCInferenceService.methods.filter(({ name }) => !called.includes(name)).map(({ name }) => name)
  expect(missing).toEqual([])
})
