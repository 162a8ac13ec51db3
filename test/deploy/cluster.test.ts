/**
 * The programs of the guide on clusters, as processes with a database: runners that stop, die and join under constant
 * traffic, with the defaults of Effect's cluster. Without PostgreSQL, the database is a file of SQLite.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { ManagedRuntime } from "effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { Guide } from "../Guide.ts"
import { freePort, Program, root } from "../Program.ts"
import type { Sums } from "../../packages/cluster/src/Sums.fixture.ts"
import { ClusterTraffic, type SumsModel, summary } from "./ClusterTraffic.ts"
import { Postgres, programs } from "./Postgres.ts"

const sessions = 60

const guide = new Guide("docs/guides/cluster.md")
const folder = mkdtempSync(join(tmpdir(), "nereid-cluster-"))
const cleanups: Array<() => Promise<void>> = []
const environment: NodeJS.ProcessEnv = {}
let database: (() => Promise<void>) | undefined

beforeAll(async () => {
  if (programs === undefined) {
    console.log("There is no PostgreSQL: the cluster has a file of SQLite")
    const fixture = join(root, "packages/cluster/src/store/Sqlite.fixture.ts")
    const file = JSON.stringify(join(folder, "cluster.sqlite"))
    writeFileSync(
      guide.file("database.ts"),
      `import { layer } from "${fixture}"\nexport const DatabaseLive = layer(${file})\n`,
    )
  } else {
    const postgres = await Postgres.start()
    database = () => postgres[Symbol.asyncDispose]()
    environment["DATABASE_URL"] = postgres.url
    process.env["DATABASE_URL"] = postgres.url
  }
})

/** Ends what began after the database. */
const cleanUp = async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
}

/**
 * Settings of the cluster for all runners that start from now on, as variables. Returns a caller of the guide with the
 * same settings, as options: Effect reads the variables of a process once.
 */
const configure = (variables: { readonly [name: string]: string }, options: string): string => {
  Object.assign(environment, variables)
  cleanups.push(async () => {
    for (const name of Object.keys(variables)) delete environment[name]
  })
  const name = options.replaceAll(/\W+/g, "")
  const variant = (file: string, from: string, to: string) => {
    const text = readFileSync(guide.file(file), "utf8")
    if (!text.includes(from)) throw new Error(`the guide has no ${from}`)
    writeFileSync(guide.file(`${name}-${file}`), text.replaceAll(from, to))
  }
  variant("cluster.ts", "layerFromEnv()", `layerFromEnv(${options})`)
  variant("caller.ts", "./cluster.ts", `./${name}-cluster.ts`)
  return guide.file(`${name}-caller.ts`)
}

afterAll(async () => {
  await database?.()
  guide[Symbol.dispose]()
  rmSync(folder, { recursive: true })
})

interface Runner {
  readonly program: Program
  readonly http: number
  readonly grpc: number
}

const start = async (file = guide.file("runner.ts")): Promise<Runner> => {
  const [port, http, grpc] = await Promise.all([freePort(), freePort(), freePort()])
  const ports = { HOST: "127.0.0.1", PORT: `${port}`, HTTP_PORT: `${http}`, GRPC_PORT: `${grpc}` }
  const process = new Program([file], { ...environment, ...ports })
  cleanups.push(async () => {
    process.signal("SIGKILL")
    await process.ended
  })
  await process.match(new RegExp(`${http}`))
  return { program: process, http, grpc }
}

/** A variant of the guide's runner. */
const program = (name: string, from: string, to: string): string => {
  const text = readFileSync(guide.file("runner.ts"), "utf8")
  if (!text.includes(from)) throw new Error(`the guide has no ${from}`)
  writeFileSync(guide.file(name), text.replace(from, to))
  return guide.file(name)
}

const persistent = () =>
  program("persistent.ts", "Cluster.layer(Sums, SumsLive)", 'Cluster.layer(Sums, SumsLive, { persist: "eachRequest" })')

const models = (): Promise<{ readonly Sums: SumsModel }> => import(guide.file("models.ts"))

/** Requests that each runner has executed. */
const executed = (runners: ReadonlyArray<Runner>): Promise<ReadonlyArray<number>> =>
  Promise.all(
    runners.map(async ({ http }) => {
      const response = await fetch(`http://127.0.0.1:${http}/v2/models/sums/stats`)
      const [, count] = /"inference_count":"?(\d+)/.exec(await response.text()) ?? []
      return Number(count)
    }),
  )

/** The requests of each runner in a second, as shares. */
const shares = async (runners: ReadonlyArray<Runner>): Promise<ReadonlyArray<number>> => {
  const before = await executed(runners)
  await new Promise((resolve) => setTimeout(resolve, 1000))
  const counts = (await executed(runners)).map((count, index) => count - (before[index] ?? 0))
  const total = counts.reduce((sum, count) => sum + count, 0)
  return counts.map((count) => Math.round((100 * count) / total) / 100)
}

/** A caller without sequences of its own in this process, and its traffic. */
const drive = async (sessions: number, caller = guide.file("caller.ts")): Promise<ClusterTraffic> => {
  const { SumsClient } = await import(caller)
  const { Sums } = await models()
  const runtime = ManagedRuntime.make<Sums, unknown>(SumsClient)
  const sums = await runtime.runPromise(Sums)
  const traffic = new ClusterTraffic((effect) => runtime.runPromise(effect), sums, sessions, 100)
  cleanups.push(async () => {
    await traffic[Symbol.asyncDispose]()
    await runtime.dispose()
  })
  await traffic.answered(0, 10)
  return traffic
}

const print = (what: string, figures: unknown) => console.log(what, JSON.stringify(figures))

describe("runners with the defaults of the cluster, under constant traffic", () => {
  let runners: ReadonlyArray<Runner>
  let traffic: ClusterTraffic

  beforeAll(async () => {
    runners = await Promise.all([start(), start(), start()])
    traffic = await drive(sessions)
    print("shares of three runners", await shares(runners))
  })

  afterAll(cleanUp)

  it("hand over their sequences when they stop, and lose no request", { timeout: 120_000 }, async () => {
    const [first] = runners
    const since = performance.now()
    first?.program.signal("SIGTERM")
    const { code } = (await first?.program.ended) ?? {}
    expect(code).toBe(0)
    const took = Math.round(performance.now() - since)
    await traffic.answered(performance.now(), 5)
    runners = runners.slice(1)
    print("a stop, in ms", { took, ...summary(traffic.pauses(since)), shares: await shares(runners) })
    expect(traffic.problems(0)).toEqual([])
    expect(Math.max(...traffic.pauses(since))).toBeLessThan(20_000)
  })

  it("hand over sequences to one that joins, and lose no request", { timeout: 120_000 }, async () => {
    const since = performance.now()
    runners = [...runners, await start()]
    await expect.poll(async () => Math.min(...(await shares(runners))), { timeout: 60_000 }).toBeGreaterThan(0.15)
    const took = Math.round(performance.now() - since)
    await traffic.answered(performance.now(), 5)
    print("a join, in ms", { took, ...summary(traffic.pauses(since)), shares: await shares(runners) })
    expect(traffic.problems(0)).toEqual([])
    expect(Math.max(...traffic.pauses(since))).toBeLessThan(20_000)
  })

  it("execute each request once although a runner stands still for a while", { timeout: 120_000 }, async () => {
    const since = performance.now()
    runners[0]?.program.signal("SIGSTOP")
    await new Promise((resolve) => setTimeout(resolve, 8000))
    runners[0]?.program.signal("SIGCONT")
    await traffic.answered(performance.now(), 5)
    print("8 s of standstill, in ms", summary(traffic.pauses(since)))
    expect(traffic.problems(0)).toEqual([])
  })

  it("lose the states of one that dies, and say so", { timeout: 120_000 }, async () => {
    const since = performance.now()
    runners[0]?.program.signal("SIGKILL")
    await runners[0]?.program.ended
    await traffic.answered(performance.now(), 5)
    const problems = traffic.problems(since)
    print("a death, in ms", { lost: problems.length, ...summary(traffic.pauses(since)) })
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.length).toBeLessThan(sessions)
    for (const problem of problems) expect(JSON.parse(problem)).toMatchObject({ reason: "restarted" })
  })
})

/** Sessions of each kind whose calls are measured. */
const measured = 15

/**
 * Median time of a call by gRPC in sessions of a runner, by whether the runner owns the sequence, in milliseconds.
 * Opens sessions until there are enough of each kind: the first runner of a cluster owns all of them for a while.
 */
const latencies = async (
  runner: Runner,
  kinds: ReadonlyArray<"owned" | "routed">,
): Promise<{ readonly owned: number; readonly routed: number }> => {
  const { Sums } = await models()
  await using sums = await Client.connect(Sums, { url: `grpc://127.0.0.1:${runner.grpc}` })
  const times = { owned: new Array<number>(), routed: new Array<number>() }
  const isMissing = (kind: "owned" | "routed") => times[kind].length < 30 * measured
  for (let index = 0; kinds.some(isMissing); index++) {
    const [before = 0] = await executed([runner])
    await using session = sums.session()
    // The part may be new to its owner.
    for (let call = 0; call < 10; call++) await session.infer({ VALUE: 1 })
    const [after = 0] = await executed([runner])
    // Warm-up of the processes.
    const taken = index < 10 ? [] : after > before ? times.owned : times.routed
    for (let call = 0; call < 30; call++) {
      const sentAt = performance.now()
      await session.infer({ VALUE: 1 })
      taken.push(performance.now() - sentAt)
    }
  }
  return { owned: median(times.owned), routed: median(times.routed) }
}

const median = (values: ReadonlyArray<number>): number =>
  Math.round(100 * (values.toSorted((one, other) => one - other)[values.length >> 1] ?? NaN)) / 100

describe("a call through another runner", () => {
  afterAll(cleanUp)

  it("costs a message there and back", { timeout: 180_000 }, async () => {
    const plain = await start(program("single.ts", "Layer.provide(models)", "Layer.provide(SumsLive)"))
    const [first] = await Promise.all([start(), start()])
    const alone = await latencies(plain, ["owned"])
    const cluster = await latencies(first, ["owned", "routed"])
    await cleanUp()
    const [stored] = await Promise.all([start(persistent()), start(persistent())])
    print("a call in ms: without a cluster", alone.owned)
    print("a call in ms: of two runners", cluster)
    const storing = await latencies(stored, ["owned", "routed"])
    print("a call in ms: of two runners that store each request", storing)
    expect(cluster.routed).toBeLessThan(20 * alone.owned)
  })
})

describe("runners that store the state of each request, with an expiration of ten seconds", () => {
  afterEach(cleanUp)

  it("lose nothing when one of four dies that have begun at once", { timeout: 120_000 }, async () => {
    const caller = configure({ SHARD_LOCK_EXPIRATION: "10 seconds" }, '{ shardLockExpiration: "10 seconds" }')
    const runners = await Promise.all([1, 2, 3, 4].map(() => start(persistent())))
    const traffic = await drive(sessions, caller)
    const before = await shares(runners)
    print("shares of four runners", before)
    expect(Math.min(...before)).toBeGreaterThan(0.05)
    const since = performance.now()
    runners[0]?.program.signal("SIGKILL")
    await runners[0]?.program.ended
    await traffic.answered(performance.now(), 5)
    print("a death without loss, in ms", summary(traffic.pauses(since)))
    expect(traffic.problems(0)).toEqual([])
    // Effect's default, in the runners or the caller, would be 35 seconds.
    expect(Math.max(...traffic.pauses(since))).toBeLessThan(30_000)
  })

  it("keep what others have executed while one stood still beyond its locks", { timeout: 180_000 }, async () => {
    // Locks that a database holds for a session do not expire with its process.
    const caller = configure(
      { SHARD_LOCK_EXPIRATION: "10 seconds", SHARD_LOCK_DISABLE_ADVISORY: "true" },
      '{ shardLockExpiration: "10 seconds", shardLockDisableAdvisory: true }',
    )
    const runners = await Promise.all([1, 2, 3].map(() => start(persistent())))
    const traffic = await drive(sessions, caller)
    const since = performance.now()
    runners[0]?.program.signal("SIGSTOP")
    // The others have all sequences.
    await traffic.answered(performance.now(), 20)
    const pauses = summary(traffic.pauses(since))
    runners[0]?.program.signal("SIGCONT")
    const resumed = performance.now()
    await expect.poll(async () => Math.min(...(await shares(runners))), { timeout: 60_000 }).toBeGreaterThan(0.05)
    await traffic.answered(performance.now(), 20)
    print("a standstill beyond the locks, in ms", { ...pauses, afterwards: summary(traffic.pauses(resumed)) })
    // Each total was right: no state was older than a response.
    expect(traffic.problems(0)).toEqual([])
  })
})
