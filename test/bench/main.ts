/**
 * `npm run bench`: what the server reaches beside bare Node servers that do nothing, and whether inference leaves its
 * event loop free. docs/performance.md says what is measured and how to read it.
 */
import { cpus } from "node:os"
import { parseArgs } from "node:util"
import * as Child from "./Child.ts"
import { compare, type Comparison } from "./Comparison.ts"
import * as Cores from "./Cores.ts"
import * as Neighbours from "./Neighbours.ts"
import * as Page from "./Page.ts"
import * as Probe from "./Probe.ts"
import { requests } from "./Request.ts"
import { saturate } from "./Saturation.ts"
import * as Table from "./Table.ts"

const { values: flags } = parseArgs({
  options: {
    /** Of each measurement. */
    seconds: { type: "string" },
    rounds: { type: "string" },
    /** Whether everything works, in a few seconds. Its numbers mean nothing. */
    short: { type: "boolean", default: false },
    /** Puts the results into docs/performance.md. */
    write: { type: "boolean", default: false },
  },
})
if (flags.short && flags.write) throw new Error("--write is for numbers that mean something: not with --short")

const positive = (name: string, text: string): number => {
  const number = Number(text)
  if (number > 0) return number
  throw new Error(`--${name} is ${text}, expected a number above 0`)
}
const durations = {
  seconds: positive("seconds", flags.seconds ?? (flags.short ? "0.05" : "2")),
  rounds: Math.ceil(positive("rounds", flags.rounds ?? "3")),
}
const saturated = flags.short ? 2 : 10

const cores = Cores.pin()
const pinned =
  cores === undefined
    ? "not pinned to cores"
    : `the servers pinned to core ${cores.server}, the load to core ${cores.load}`
const machine = `${cpus().length} cores of ${cpus()[0]?.model ?? "unknown"}, Node ${process.version}; ${pinned}`
const how = `medians of ${durations.rounds} rounds of ${durations.seconds} s`
console.log(`${machine}; ${how}\n`)

const server = await Child.start(new URL("./server.ts", import.meta.url), cores?.server)
const echo = await Child.start(new URL("./echo.ts", import.meta.url), cores?.server)
const neighbours = await Neighbours.watch([server, echo])
const rows: Array<Comparison> = []
for (const request of requests) {
  const replyBytes = await Probe.replyBytes(server.ports, request)
  for (const concurrency of [1, 16, 64]) {
    console.error(`${request.model} over ${request.protocol}, ${concurrency} at a time …`)
    rows.push(await compare({ server, echo }, request, replyBytes, concurrency, durations))
  }
}
const digits = requests.find(({ model, protocol }) => model === "digits" && protocol === "gRPC")
if (digits === undefined) throw new Error("There is a request for digits. This is a bug.")
console.error("digits saturated …")
const saturation = await saturate(server, digits, await Probe.replyBytes(server.ports, digits), saturated)
const taken = await neighbours()
const advice = taken > 0.1 ? ": to be measured again where it is quiet" : ""
const others = `other programs kept ${taken.toFixed(2)} cores busy meanwhile${advice}`
await Promise.all([server.stop(), echo.stop()])

const results = [Table.comparisons(rows), Table.saturation(saturation)].join("\n\n")
console.log(`${results}\n\n${others}`)
if (flags.write) {
  const day = new Date().toISOString().slice(0, 10)
  Page.write([`Measured on ${day} on ${machine}; ${how}; ${others}.`, results].join("\n\n"))
}

const errors = [...rows.flatMap((row) => row.errors), ...saturation.errors]
if (errors.length > 0) {
  console.error(`${errors.length} errors, of these kinds:`)
  for (const kind of new Set(errors)) console.error(`  ${kind}`)
  process.exitCode = 1
}
