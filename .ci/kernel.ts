/**
 * Compiles core's kernel (packages/core/kernel, AssemblyScript) to WebAssembly, and writes it as a module with base64.
 * The output path is the argument, or by default the committed file. Users of the package therefore need no compiler.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const [target = join(root, "packages/core/src/gen/kernel.ts")] = process.argv.slice(2)

// No runtime and no garbage: functions over a fixed memory, with vectors of 128 bits.
const options = ["--optimizeLevel", "3", "--runtime", "stub", "--noAssert", "--enable", "simd"]
const memory = ["--initialMemory", "4", "--maximumMemory", "4", "--memoryBase", "1024"]

const scratch = mkdtempSync(join(tmpdir(), "kernel-"))
try {
  const compiled = join(scratch, "kernel.wasm")
  execFileSync("asc", ["packages/core/kernel/index.ts", ...options, ...memory, "--outFile", compiled], {
    cwd: root,
    stdio: "inherit",
  })
  const text = readFileSync(compiled).toString("base64")
  const lines = text.match(/.{1,116}/g) ?? []
  writeFileSync(
    target,
    [
      "/** WebAssembly as base64, compiled from packages/core/kernel by `npm run generate`. */",
      "export const kernel: string =",
      ...lines.map((line, index) => `  "${line}"${index === lines.length - 1 ? "" : " +"}`),
      "",
    ].join("\n"),
  )
} finally {
  rmSync(scratch, { recursive: true })
}
