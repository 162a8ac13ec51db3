/**
 * Runs the conformance cases against a real Triton: `TRITON_SERVER=/path/to/tritonserver npm run test:triton`. Triton
 * needs its Python backend, with numpy. Prints the differences that KnownDifferences.ts does not list, and exits with 1
 * if there are any, or if one that it lists is gone. Without the variable, it exits with 0 and gives the reason.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../Program.ts"

const program = process.env["TRITON_SERVER"] ?? ""

const test = async (): Promise<void> => {
  const { cases, differences } = await import("./TritonCases.ts")
  const { knownDifferences } = await import("./KnownDifferences.ts")
  const TritonModels = await import("./TritonModels.ts")
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

  const repository = mkdtempSync(join(tmpdir(), "nereid-triton-"))
  TritonModels.write(repository)
  let server = await TritonServer.start(program, repository)
  const counts = new Map(knownDifferences.map((known) => [known, 0]))
  let equal = 0
  try {
    for (const one of cases) {
      const found = await differences(one, server)
      if (found.length === 0) equal += 1
      for (const line of found) {
        const known = knownDifferences.find(
          ({ cases: names, lines }) => (lines?.test(line) ?? true) && (names?.test(one.name) ?? true),
        )
        if (known === undefined) fail(`${one.name}: ${line.slice(0, 500)}`)
        else counts.set(known, (counts.get(known) ?? 0) + 1)
      }
      if (found.length === 0 || (await isLive(server.http))) continue
      // Some requests end Triton.
      await server[Symbol.asyncDispose]()
      server = await TritonServer.start(program, repository)
    }
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(repository, { recursive: true })
  }
  for (const [{ row, cases: names, lines }, count] of counts) {
    if (count === 0) fail(`No case differs by ${String(lines ?? names)} any more, of the row '${row}'`)
  }
  console.log(`${cases.length} cases ran against Triton, ${equal} without a difference`)
}

const isLive = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/v2/health/live`).then(
    ({ ok }) => ok,
    () => false,
  )

if (program === "") console.log("Skipped: the variable TRITON_SERVER is not the path of a tritonserver")
else await test()
