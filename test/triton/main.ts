/**
 * Runs the conformance cases against a real Triton: `TRITON_SERVER=/path/to/tritonserver npm run test:triton`. Triton
 * needs its Python backend, with numpy. Prints the differences that KnownDifferences.ts does not list, and exits with 1
 * if there are any, or if one that it lists is gone. Without the variable, it exits with 0 and gives the reason.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { root } from "../Program.ts"
import type { TritonCase } from "./TritonCases.ts"
import type * as Server from "./TritonServer.ts"

const program = process.env["TRITON_SERVER"] ?? ""

const test = async (): Promise<void> => {
  const { cases, differences } = await import("./TritonCases.ts")
  const { knownDifferences } = await import("./KnownDifferences.ts")
  const { setups } = await import("./TritonSetups.ts")
  const TritonServer = await import("./TritonServer.ts")
  const guide = readFileSync(join(root, "docs/guides/differences-from-triton.md"), "utf8")
  const fail = (message: string) => {
    console.error(message)
    process.exitCode = 1
  }
  const cells = guide.split("\n").map((line) => line.split(" | ")[0] ?? "")
  for (const { row } of knownDifferences) {
    if (!cells.some((cell) => cell.includes(row))) fail(`The guide on differences has no row of '${row}'`)
  }

  const counts = new Map(knownDifferences.map((known) => [known, 0]))
  const summary = { ran: 0, equal: 0, skipped: new Map<string, number>() }
  const compare = async (one: TritonCase, server: Server.TritonServer): Promise<boolean> => {
    const found = await differences(one, server, server.log)
    summary.ran += 1
    if (found.length === 0) summary.equal += 1
    for (const line of found) {
      const known = knownDifferences.find(
        ({ cases: names, lines }) => (lines?.test(line) ?? true) && (names?.test(one.name) ?? true),
      )
      if (known === undefined) fail(`${one.name}: ${line.slice(0, 1000)}`)
      else counts.set(known, (counts.get(known) ?? 0) + 1)
    }
    // Some requests end Triton.
    return found.length === 0 || (await isLive(server.http))
  }

  for (const { reason } of cases) {
    if (reason !== undefined) summary.skipped.set(reason, (summary.skipped.get(reason) ?? 0) + 1)
  }
  for (const [name, setup] of Object.entries(setups)) {
    const repository = mkdtempSync(join(tmpdir(), "nereid-triton-"))
    setup.write(repository)
    let server = await TritonServer.start(program, repository, setup.flags)
    try {
      for (const one of cases) {
        if (one.server !== name || one.reason !== undefined) continue
        if (await compare(one, server)) continue
        await server[Symbol.asyncDispose]()
        server = await TritonServer.start(program, repository, setup.flags)
      }
    } finally {
      await server[Symbol.asyncDispose]()
      rmSync(repository, { recursive: true })
    }
  }
  const { scenarios } = await import("./Scenarios.ts")
  const Sites = await import("./Sites.ts")
  for (const scenario of scenarios) {
    const [there, here] = [await Sites.triton(program, scenario), await Sites.nereid(scenario)]
    if (isDeepStrictEqual(there, here)) continue
    fail(`${scenario.name}: Triton shows ${JSON.stringify(there)}, Nereid ${JSON.stringify(here)}`)
  }
  const { scenarios: sequences } = await import("../sequences/Scenarios.ts")
  const Sequences = await import("./Sequences.ts")
  for (const scenario of sequences) {
    const found = await Sequences.differences(program, scenario)
    const isExpected = scenario.unlikeTriton !== undefined
    if (isExpected && found.length === 0) fail(`${scenario.name} does not differ any more`)
    for (const line of isExpected ? [] : found) fail(line)
  }
  for (const [{ row, cases: names, lines }, count] of counts) {
    if (count === 0) fail(`No case differs by ${String(lines ?? names)} any more, of the row '${row}'`)
  }
  console.log(`${scenarios.length} scenarios ran against Triton and Nereid`)
  console.log(`${sequences.length} scenarios of sequences ran against Triton`)
  console.log(`${summary.ran} cases ran against Triton, ${summary.equal} without a difference`)
  for (const [reason, count] of [...summary.skipped].toSorted(([, a], [, b]) => b - a)) {
    console.log(`${count} did not: ${reason}`)
  }
}

const isLive = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/v2/health/live`).then(
    ({ ok }) => ok,
    () => false,
  )

if (program === "") console.log("Skipped: the variable TRITON_SERVER is not the path of a tritonserver")
else await test()
