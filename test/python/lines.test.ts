/**
 * Every line of Triton's Python backend has a case or a test that proves it where it shows: over HTTP and over gRPC, or
 * in the process. No case and no test names a line that there is not.
 */
import { globSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { expect, it } from "vitest"
import { root } from "../Program.ts"
import { calls as callCases } from "./cases/Calls.ts"
import { control, uncontrolled } from "./cases/Control.ts"
import { environments } from "./cases/Environments.ts"
import { executions as executionCases } from "./cases/Executions.ts"
import { life } from "./cases/Life.ts"
import { loads } from "./cases/Loads.ts"
import { strictLoads } from "./cases/StrictLoads.ts"
import { requests } from "./cases/Requests.ts"
import { services as serviceCases } from "./cases/Services.ts"
import { streams } from "./cases/Streams.ts"
import { tensors } from "./cases/Tensors.ts"
import { api } from "./lines/Api.ts"
import { calls } from "./lines/Calls.ts"
import { configuration } from "./lines/Configuration.ts"
import { death } from "./lines/Death.ts"
import { executions } from "./lines/Executions.ts"
import { lifeCycle } from "./lines/LifeCycle.ts"
import { processes } from "./lines/Processes.ts"
import { type Face, facesOf } from "./lines/PythonLine.ts"
import { services } from "./lines/Services.ts"
import { transportsOf } from "./PythonCase.ts"

const all = [...processes, ...lifeCycle, ...executions, ...api, ...services, ...configuration, ...death, ...calls]

const groups = [
  callCases,
  control,
  environments,
  executionCases,
  life,
  loads,
  requests,
  serviceCases,
  streams,
  strictLoads,
  tensors,
  uncontrolled,
]

interface Proof {
  readonly label: string
  readonly face: Face
  readonly by: string
}

const ofCases = groups.flatMap(({ cases }) =>
  cases.flatMap((one) =>
    transportsOf(one).flatMap((face) => (one.proves ?? []).map((label): Proof => ({ label, face, by: one.name }))),
  ),
)

const files = globSync(["packages/*/src/**/*.test.ts", "packages/python/python/tests/*.py", "test/**/*.test.ts"], {
  cwd: root,
})

const ofFiles = files.flatMap((path) =>
  [...readFileSync(`${root}/${path}`, "utf8").matchAll(/(?<![\w.])(P\d\.[a-z\d.-]*[a-z\d])@([a-zA-Z]+)\b/g)].flatMap(
    ([, label = "", suffix = ""]) =>
      (facesOf[suffix] ?? []).map((face): Proof => ({ label, face, by: basename(path) })),
  ),
)

const proofs = [...ofCases, ...ofFiles]

for (const [label, { text, faces, reason }] of all) {
  const own = proofs.filter((proof) => proof.label === label)
  const by = [...new Set(own.map((proof) => proof.by))].join(", ")
  it(`${label}, ${text}: ${by}${reason === undefined ? "" : ` (${reason})`}`, () => {
    expect(faces.filter((face) => !own.some((proof) => proof.face === face))).toEqual([])
  })
}

it("every label of a line is defined and used", () => {
  const table = new Map(all)
  expect(table.size).toBe(all.length)
  expect(proofs.filter(({ label, face }) => table.get(label)?.faces.includes(face) !== true)).toEqual([])
})

it("the groups of the cases are all that there are", () => {
  const own = globSync("test/python/cases/*.ts", { cwd: root }).flatMap((path) => [
    ...readFileSync(`${root}/${path}`, "utf8").matchAll(/^export const \w+: CaseGroup/gm),
  ])
  expect(own).toHaveLength(groups.length)
})
