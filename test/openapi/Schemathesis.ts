/**
 * Runs schemathesis, which makes requests from an OpenAPI document and checks the answers against it. A run takes half
 * a minute, and always makes the same requests.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { dirname, join } from "node:path"

const folder = import.meta.dirname

/** Requests of each operation that are made at random; those of the coverage phase are many more. */
const examples = 10

/** Returns whether it found nothing. `made`: the path of the document to write for it. */
export const test = async (python: string, document: unknown, made: string, url: string): Promise<boolean> => {
  writeFileSync(made, JSON.stringify(document, readable))
  const given = [`--config-file=${join(folder, "schemathesis.toml")}`, "run", made, `--url=${url}`]
  // It reads a response to its end, which the streams of the page do not have.
  const streams = "--exclude-path-regex=^/(live|log)$"
  const phases = ["--phases=examples,coverage,fuzzing", `--max-examples=${examples}`, "--generation-deterministic"]
  const all = [...given, streams, ...phases, "--continue-on-failure", "--warnings=off", "--no-color"]
  const child = spawn(python, ["-m", "schemathesis.cli", ...all], {
    cwd: dirname(made),
    env: { ...process.env, SCHEMATHESIS_HOOKS: "hooks", PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: "1" },
    stdio: "inherit",
    timeout: 5 * 60_000,
    killSignal: "SIGKILL",
  })
  const [code]: Array<number | null> = await once(child, "exit")
  return code === 0
}

/**
 * Leaves out two parts: `prefixItems`, which schemathesis 4.32 rewrites to an invalid schema, and responses of any
 * status, so that it finds a status without a response. The defaults of inputs go with these.
 */
const readable = (key: string, value: unknown): unknown =>
  key === "prefixItems" || key === "default" ? undefined : value
