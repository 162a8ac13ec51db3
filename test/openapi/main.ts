/**
 * Tests the OpenAPI document against a running server: `npm run test:openapi`. A typed client from openapi-typescript
 * calls models, and schemathesis compares answers with the document. Each is skipped, with a reason, where its tools
 * cannot be installed. Exits with 1 if one fails.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PythonEnvironment from "../PythonEnvironment.ts"
import { Program } from "../Program.ts"
import * as Schemathesis from "./Schemathesis.ts"
import * as TypedClient from "./TypedClient.ts"

const folder = import.meta.dirname
const made = mkdtempSync(join(tmpdir(), "nereid-openapi-"))
const missing = TypedClient.prepare()
const environment = PythonEnvironment.prepare(folder)
try {
  await using program = new Program([join(folder, "server.ts")])
  const [, port] = await program.match(/^serving on port (\d+)$/m)
  const url = `http://127.0.0.1:${port}`
  const document: unknown = await (await fetch(`${url}/openapi.json`)).json()
  const whole = join(made, "openapi.json")
  writeFileSync(whole, JSON.stringify(document))

  const failure = missing === undefined ? TypedClient.test(whole, url) : undefined
  if (missing !== undefined) console.log(`Skipped, no typed client has been generated: ${missing}`)
  else if (failure === undefined) console.log("A client with types from openapi-typescript works.")
  else {
    console.error(failure)
    process.exitCode = 1
  }

  if ("missing" in environment) {
    console.log(`Skipped, schemathesis has not checked the document: ${environment.missing}`)
  } else if (!(await Schemathesis.test(environment.python, document, join(made, "schemathesis.json"), url))) {
    process.exitCode = 1
  }
} finally {
  rmSync(made, { recursive: true })
}
