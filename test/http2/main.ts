/**
 * Compares and damages connections of `@nereid/http2`, with other seeds each time, and runs the tests of its clients
 * with grpc-go, which Go compiles:
 *
 *   npm run test:http2                              50,000 damaged connections, and 10,000 beside node:http2
 *   npm run test:http2 -- --connections=1000000     for a night: a million, and 200,000
 *   npm run test:http2 -- --connections=1 --seed=7  the connection with this seed
 *
 * Prints the seed of a connection that fails, and exits with 1.
 */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import * as Flags from "../Flags.ts"
import { run } from "../../packages/http2/src/connection/Mutations.fixture.ts"
import * as Differential from "./Differential.ts"

/** Compiled once on a machine: Go keeps what it has compiled. */
const compileClient = () => {
  const folder = import.meta.dirname
  const args = ["build", "-o", join(folder, ".tools/bin/grpc-go"), "."]
  const options = { cwd: join(folder, "go"), encoding: "utf8", timeout: 10 * 60_000 } as const
  const { status, error, stderr } = spawnSync("go", args, { ...options, env: { ...process.env, CGO_ENABLED: "0" } })
  if (status === 0) return
  console.log(`Cannot compile the client of grpc-go: ${error?.message ?? stderr.trim().split("\n").at(-1)}`)
}

const testClients = () => {
  const root = join(import.meta.dirname, "../..")
  const vitest = ["run", "--config", "test/vitest.config.ts", "test/http2/clients.test.ts"]
  const { status } = spawnSync(join(root, "node_modules/.bin/vitest"), vitest, { cwd: root, stdio: "inherit" })
  if (status !== 0) process.exitCode = 1
}

const values = Flags.read("npm run test:http2 -- [flags]", {
  connections: {
    type: "string",
    default: "50000",
    description: "Damaged connections; a fifth of them beside node:http2.",
  },
  seed: {
    type: "string",
    default: String(Math.floor(Math.random() * 2 ** 31)),
    description: "The first seed; the others follow it.",
  },
})
const connections = Number(values.connections)
const first = Number(values.seed)
if (!(connections >= 1) || !Number.isInteger(first)) throw new Error("--connections and --seed are numbers")

/** Resident memory that all connections together may take, one after the other. */
const maxMemory = 2 ** 30

const seeds = (count: number) => Array.from({ length: count }, (_, index) => (first + index) | 0)

const fail = (what: string, seed: number, cause: unknown) => {
  console.error(`${what} of seed ${seed} has failed:`, cause)
  process.exitCode = 1
}

let failed = 0
for (const seed of seeds(connections)) {
  try {
    if (run(seed)) failed += 1
  } catch (error) {
    fail("The damaged connection", seed, error)
  }
}
console.log(`${connections} damaged connections from seed ${first}: ${failed} were ended`)

/** Each kind of connection beside node:http2 takes a twentieth of the number. */
const compared = Math.ceil(connections / 20)
for (const role of ["server", "client"] as const) {
  for (const isDamaged of [false, true]) {
    const kind = `${isDamaged ? "damaged" : "valid"} connections of a ${role}`
    let equal = 0
    for (const seed of seeds(compared)) {
      try {
        const { wrong, isEqual } = await Differential.run(role, isDamaged, seed)
        if (wrong.length > 0) fail(`One of the ${kind}`, seed, wrong)
        if (isEqual) equal += 1
      } catch (error) {
        fail(`One of the ${kind}`, seed, error)
      }
    }
    console.log(`${compared} ${kind} beside node:http2: ${equal} are equal, the others differ as permitted`)
  }
}

const memory = process.memoryUsage.rss()
console.log(`${Math.round(memory / 2 ** 20)} MiB of memory`)
if (memory > maxMemory) {
  console.error(`That is more than ${maxMemory / 2 ** 20} MiB`)
  process.exitCode = 1
}

compileClient()
testClients()
