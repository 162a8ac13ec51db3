/**
 * `node test/bench/goodput.ts`: answers in time of a server that is asked for more than it can do, as a share of the
 * capacity, which is measured before and after each of them. docs/guides/overload.md has its figures. Starts our server
 * or one of OtherServer.ts, or loads another one whose ports are given: its models need the same names and tensors.
 */
import * as Metronome from "@nereid/bench/internal/load/Metronome"
import { cpus } from "node:os"
import * as Flags from "../Flags.ts"
import * as Child from "./Child.ts"
import * as Cores from "./Cores.ts"
import * as OtherServer from "./OtherServer.ts"
import * as Overload from "./Overload.ts"
import * as Request from "./Request.ts"
import * as RequestLoad from "./RequestLoad.ts"
import { table } from "./Table.ts"

const flags = Flags.read("node test/bench/goodput.ts [flags]", {
  only: { type: "string", description: "Names of cases, with commas between them. Default all." },
  seconds: { type: "string", default: "3", description: "Duration of each measurement." },
  times: { type: "string", default: "1.2,2,5", description: "Multiples of the capacity." },
  deadline: { type: "string", default: "100", description: "Milliseconds after which a caller gives up." },
  callers: {
    type: "string",
    default: "told,silent",
    description: 'Whether callers tell their deadline: "told", "silent", or both.',
  },
  server: { type: "string", default: "nereid", description: "The server: ours, or one of OtherServer.ts." },
  "queue-timeout": {
    type: "string",
    description: "Milliseconds after which the queues of Triton refuse a request. Default never.",
  },
  "grpc-port": { type: "string", description: "Port for gRPC of a server that runs already." },
  "http-port": { type: "string", description: "Port for HTTP of a server that runs already." },
})

const text: Request.Request = {
  path: "/v2/models/sentiment/infer",
  headers: { "content-type": "application/json" },
  body: Buffer.from(
    JSON.stringify({ inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["a fine and quiet film"] }] }),
  ),
}

interface Case {
  readonly name: string
  readonly load: RequestLoad.RequestLoad
}

const cases: ReadonlyArray<Case> = [
  { name: "digits-grpc", load: RequestLoad.unary("digits", 64) },
  { name: "digits-json", load: RequestLoad.http(Request.json("digits"), 64) },
  { name: "pipeline-json", load: RequestLoad.http(text, 64) },
  { name: "steady-grpc", load: RequestLoad.unary("steady", 64) },
  { name: "add-sub-grpc", load: RequestLoad.unary("add_sub", 64) },
]

const names = flags.only?.split(",") ?? cases.map(({ name }) => name)
const unknown = names.find((name) => !cases.some((one) => one.name === name))
if (unknown !== undefined)
  throw new Error(`--only names ${unknown}, expected one of ${cases.map(({ name }) => name).join(", ")}`)
const seconds = Number(flags.seconds)
const milliseconds = Number(flags.deadline)

const head = [
  [
    "case",
    "callers",
    "times",
    "capacity/s before, after",
    "sent/s",
    "in time/s",
    "of capacity",
    "p50, p99",
    "accepted p99",
    "refused/s",
    "refusal p50, p99",
    "late/s",
    "load CPU, delay p99",
  ],
  Array.from({ length: 13 }, () => "---"),
] as const

const cores = Cores.pin()
const clock = Metronome.start()
const rows: Array<ReadonlyArray<string>> = []

const milli = (time: number): string => (Number.isNaN(time) ? "" : time.toFixed(1))

type Server = Pick<Child.Child, "ports" | "stop">

const measure = async (server: Server, { name, load }: Case): Promise<void> => {
  const target = RequestLoad.target(server, load, await RequestLoad.replyLength(server, load))
  const options = { target, clock, connections: 16 }
  let before = await Overload.capacity(options, milliseconds, load.concurrency)
  for (const callers of flags.callers.split(",")) {
    for (const times of flags.times.split(",").map(Number)) {
      const deadline = { milliseconds, isTold: callers === "told" }
      const result = await Overload.offer(options, times * before.inTime, deadline, { seconds, settle: 1 })
      const after = await Overload.capacity(options, milliseconds, load.concurrency, before)
      const capacity = (before.inTime + after.inTime) / 2
      rows.push([
        name,
        callers,
        String(times),
        `${before.inTime.toFixed(0)}, ${after.inTime.toFixed(0)}`,
        result.sent.toFixed(0),
        result.inTime.toFixed(0),
        `${((100 * result.inTime) / capacity).toFixed(0)} %`,
        `${milli(result.answeredP50)}, ${milli(result.answeredP99)}`,
        milli(result.acceptedP99),
        result.refused.toFixed(0),
        result.refused === 0 ? "" : `${milli(result.refusedP50)}, ${milli(result.refusedP99)}`,
        result.late.toFixed(0),
        `${(100 * result.loadCpu).toFixed(0)} %, ${milli(result.latenessP99)}${Overload.isSaturated(result) ? " (!)" : ""}`,
      ])
      console.error(rows.at(-1)?.join("  "))
      if (result.reconnections > 0) console.error(`  ${result.reconnections} connections were opened again`)
      for (const [message, count] of result.problems) console.error(`  ${count} × ${message}`)
      before = after
    }
  }
}

const start = async (): Promise<Server> => {
  const { server: name, "grpc-port": grpc, "http-port": http, "queue-timeout": queueTimeout } = flags
  if (grpc !== undefined || http !== undefined)
    return { ports: { grpc: Number(grpc), http: Number(http) }, stop: async () => {} }
  if (name === "nereid") return Child.start(new URL("./goodput-server.ts", import.meta.url), cores?.server)
  if (!OtherServer.isName(name)) throw new Error(`--server is ${name}, expected nereid, triton, fastify or fastapi`)
  const kind =
    name === "triton" && queueTimeout !== undefined ? OtherServer.triton(Number(queueTimeout)) : OtherServer.kinds[name]
  const started = await kind.start(cores?.server)
  if (typeof started === "string") throw new Error(`${name} is not measured: ${started}`)
  return started
}

const placed =
  cores === undefined ? "not pinned to cores" : `the server on core ${cores.server}, the load on ${cores.load}`
console.log(`${cpus()[0]?.model ?? "unknown"}, Node ${process.version}; ${placed}; ${seconds} s for each row\n`)
for (const one of cases.filter(({ name }) => names.includes(name))) {
  const server = await start()
  await measure(server, one)
  await server.stop()
}
clock.close()
console.log(table(head, rows))
console.log("\nTimes in milliseconds. (!): the load was too slow itself, by its CPU time, its delay or its rate.")
