/** Prints the result of `nereid check`, and sets the exit code of the process. */
import type { CheckedModels } from "./CheckedModels.ts"
import * as Checks from "./Checks.ts"
import * as Finding from "./Finding.ts"

interface Manifest {
  readonly version: string
  readonly engines: { readonly node: string }
}

/** `manifest` is that of the command's package. */
export const print = async ({ version, engines }: Manifest, json: boolean, models?: CheckedModels): Promise<void> => {
  const report = Finding.report(version, await Checks.all(engines.node, models))
  console.log(json ? JSON.stringify(report, null, 2) : Finding.text(report))
  if (report.ok) return
  process.exitCode = 1
  // Exits even if a check hangs.
  setTimeout(() => process.exit(), 1000).unref()
}
