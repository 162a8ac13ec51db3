/**
 * Runs the protocol's Python clients against the server: `npm run test:interop`. Exits with 1 if a test fails, and with
 * 0, with a reason, if none can run.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { Program } from "../Program.ts"
import * as PythonEnvironment from "../PythonEnvironment.ts"

const folder = import.meta.dirname

/** The exit code of all Python tests against these servers, or of those that the command line names. */
const test = async (python: string, serving: string): Promise<number | null> => {
  const [, , ...names] = process.argv
  const child = spawn(python, ["-m", "unittest", "--buffer", ...names], {
    cwd: folder,
    env: { ...process.env, NEREID_SERVING: serving, PYTHONDONTWRITEBYTECODE: "1", GRPC_VERBOSITY: "NONE" },
    stdio: "inherit",
    timeout: 10 * 60_000,
    killSignal: "SIGKILL",
  })
  const [code]: Array<number | null> = await once(child, "exit")
  return code ?? null
}

const environment = PythonEnvironment.prepare(folder)
if ("missing" in environment) {
  console.log(`Skipped, no Python client has been tested: ${environment.missing}`)
} else {
  await using program = new Program([join(folder, "server.ts")])
  const [, serving = ""] = await program.match(/^serving (\{.*\})$/m)
  if ((await test(environment.python, serving)) !== 0) {
    console.error(`The tests of the Python clients failed. The servers said:\n${program.output}`)
    process.exitCode = 1
  }
}
