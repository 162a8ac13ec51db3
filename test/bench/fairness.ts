/**
 * `node test/bench/fairness.ts`: one caller with one request at a time, alone and beside another process that has
 * 10,000 requests in flight on one connection. Most of these are refused and sent again at once; models whose name
 * begins with `deep` keep all of them in their queue. docs/guides/overload.md has its figures.
 */
import * as ClosedLoop from "@nereid/bench/internal/load/ClosedLoop"
import * as Lane from "@nereid/bench/internal/load/Lane"
import * as Flags from "../Flags.ts"
import * as Child from "./Child.ts"
import * as Cores from "./Cores.ts"
import * as Measured from "./Measured.ts"
import * as Request from "./Request.ts"
import * as RequestLoad from "./RequestLoad.ts"
import { table } from "./Table.ts"

const flags = Flags.read("node test/bench/fairness.ts [flags]", {
  seconds: { type: "string", default: "5", description: "Duration of each measurement." },
  flood: { type: "string", default: "10000", description: "Requests of the other process in flight." },
  only: {
    type: "string",
    default: "steady,digits,add_sub,deep_steady,deep_digits,deep_echo",
    description: "Names of models, with commas between them.",
  },
})

const models = flags.only.split(",").map((name): Request.ModelName => {
  if (Request.isModelName(name)) return name
  throw new Error(`--only names ${name}, which is no model`)
})

const head = [
  ["model", "alone p50, p99", "beside p50, p99", "p99 ratio", "beside/s", "other/s", "other p50"],
  Array.from({ length: 7 }, () => "---"),
] as const

const seconds = Number(flags.seconds)
const cores = Cores.pin()

const single = async (server: Child.Child, load: RequestLoad.RequestLoad): Promise<Measured.Measured> => {
  const target = RequestLoad.target(server, load, await RequestLoad.replyLength(server, load))
  const lanes = await Lane.openAll(target, 1)
  try {
    return Measured.of(await ClosedLoop.run(lanes, { concurrency: 1, seconds }))
  } finally {
    for (const lane of lanes) lane.close()
  }
}

const measure = async (model: Request.ModelName): Promise<ReadonlyArray<string>> => {
  const server = await Child.start(new URL("./goodput-server.ts", import.meta.url), cores?.server)
  const flood = await Child.start(new URL("./flood.ts", import.meta.url), cores?.load, [], [model])
  try {
    const load = RequestLoad.unary(model, 1)
    const work = { port: server.ports.grpc, concurrency: Number(flags.flood), rows: 1 }
    // Warms up both processes.
    await flood.call("run", { ...work, seconds: 2 })
    await single(server, load)
    const alone = await single(server, load)
    const other = flood.call("run", { ...work, seconds: 2 * seconds + 1 })
    // The requests of the other process fill the queue meanwhile.
    await single(server, load)
    const beside = await single(server, load)
    const { perSecond, p50, errors } = await other
    for (const error of [...alone.errors, ...beside.errors, ...errors]) console.error(`  ${error}`)
    return [
      model,
      `${alone.p50.toFixed(2)}, ${alone.p99.toFixed(2)}`,
      `${beside.p50.toFixed(2)}, ${beside.p99.toFixed(2)}`,
      (beside.p99 / alone.p99).toFixed(1),
      beside.perSecond.toFixed(0),
      perSecond.toFixed(0),
      p50.toFixed(0),
    ]
  } finally {
    await flood.stop()
    await server.stop()
  }
}

const rows: Array<ReadonlyArray<string>> = []
for (const model of models) {
  rows.push(await measure(model))
  console.error(rows.at(-1)?.join("  "))
}
console.log(table(head, rows))
console.log("\nTimes in milliseconds.")
