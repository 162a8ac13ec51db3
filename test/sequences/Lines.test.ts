/**
 * Every line of `lines` has a test or a scenario that proves it over each transport on which a caller notices it, and
 * no test names a line that there is not.
 */
import { globSync, readFileSync } from "node:fs"
import { basename } from "node:path"
import { expect, it } from "vitest"
import { repositoryLines } from "../conformance/RepositoryLines.ts"
import { broken } from "../conformance/StoredRefusals.ts"
import { root } from "../Program.ts"
import { batches } from "./lines/Batches.ts"
import { configuration } from "./lines/Configuration.ts"
import { iterative } from "./lines/Iterative.ts"
import { life } from "./lines/Life.ts"
import { rateLimiter } from "./lines/RateLimiter.ts"
import { requests } from "./lines/Requests.ts"
import { type Face, facesOf, type SequenceLine } from "./lines/SequenceLine.ts"
import { states } from "./lines/States.ts"
import { scenarios } from "./Scenarios.ts"
import { transportsOf } from "./SequenceCalls.ts"

const all = [...configuration, ...requests, ...life, ...batches, ...states, ...iterative, ...rateLimiter]

interface Proof {
  readonly label: string
  readonly face: Face
  readonly by: string
}

const transportFaces: Readonly<Record<string, Face>> = { HTTP: "HTTP", gRPC: "gRPC", "gRPC stream": "stream" }

const ofScenarios = scenarios.flatMap((scenario) =>
  transportsOf(scenario).flatMap(([transport]) =>
    (scenario.proves ?? []).flatMap((label): ReadonlyArray<Proof> => {
      const face = transportFaces[transport]
      return face === undefined ? [] : [{ label, face, by: scenario.name }]
    }),
  ),
)

const files = globSync(["packages/*/src/**/*.test.ts", "test/**/*.test.ts"], { cwd: root })

const ofFiles = files.flatMap((path) =>
  [...readFileSync(`${root}/${path}`, "utf8").matchAll(/(?<![\w.])(L\d\.[a-z\d.-]*[a-z\d])@([a-zA-Z]+)\b/g)].flatMap(
    ([, label = "", suffix = ""]) =>
      (facesOf[suffix] ?? []).map((face): Proof => ({ label, face, by: basename(path) })),
  ),
)

const proofs = [...ofScenarios, ...ofFiles]

/** Where a line shows and nothing proves it. */
const unproven = (label: string, { faces, sameAs }: SequenceLine): ReadonlyArray<Face> => {
  if (sameAs !== undefined) {
    // Acceptance.test.ts requires the cases of a claim; every broken model is loaded over HTTP and gRPC.
    const elsewhere = repositoryLines.get(sameAs)?.faces ?? (Object.hasOwn(broken, sameAs) ? facesOf["both"] : [])
    return faces.filter((face) => face === "stream" || elsewhere?.includes(face) !== true)
  }
  return faces.filter((face) => !proofs.some((proof) => proof.label === label && proof.face === face))
}

for (const [label, line] of all) {
  const by = new Set(proofs.filter((proof) => proof.label === label).map((proof) => proof.by))
  it(`${label}, ${line.text}: ${line.sameAs ?? [...by].join(", ")}`, () => {
    expect(unproven(label, line)).toEqual([])
  })
}

it("every label of a line is defined and used", () => {
  const table = new Map(all)
  expect(table.size).toBe(all.length)
  expect(proofs.filter(({ label, face }) => table.get(label)?.faces.includes(face) !== true)).toEqual([])
})
