/**
 * Repositories and queues over time: loads with overrides, bad versions, poll mode, two repositories, priorities and
 * timeouts. A scenario runs against Triton and against Nereid, and both must show the same.
 */
import { setTimeout as sleep } from "node:timers/promises"

/** Directories of models in the language of the server, and requests to it. */
export interface Site {
  /** Writes a version that adds this number to X; undefined for one that does not load. */
  readonly model: (name: string, version: number, amount: number | undefined, repository?: 0 | 1) => void
  readonly write: (path: string, content: string, repository?: 0 | 1) => void
  readonly remove: (path: string, repository?: 0 | 1) => void
  /** The status, and the error up to its reason. */
  readonly load: (name: string, config?: object) => Promise<string>
  readonly unload: (name: string) => Promise<string>
  /** Y of X = 0, or the status. */
  readonly infer: (name: string, version?: number) => Promise<string>
  /** The names, versions, states, and whether there is a reason. */
  readonly index: () => Promise<string>
  readonly config: (name: string) => Promise<Readonly<Record<string, unknown>>>
  readonly ready: (path: string) => Promise<number>
  /** Writes a model that records the ids of each execution, and holds one with the id `hold` until `open`. */
  readonly held: (name: string, config: string) => void
  /** Its answer to a request with this many rows: the status, or the text of the error. */
  readonly send: (name: string, id: string, parameters?: object, rows?: number) => Promise<string>
  /** The executions that were recorded: ids, in their order. */
  readonly executed: () => string
  readonly open: () => void
}

export interface Scenario {
  readonly name: string
  readonly control: "explicit" | "poll"
  readonly repositories?: 2
  readonly strict?: boolean
  /** Before the start. */
  readonly prepare: (site: Site) => void
  /** Returns what both servers must show alike. */
  readonly run: (site: Site) => Promise<ReadonlyArray<unknown>>
}

const tensor = "data_type: TYPE_FP32 dims: 1"

const io = `input { name: "X" ${tensor} } output { name: "Y" ${tensor} }`

export const tensors = `max_batch_size: 4 input { name: "X" ${tensor} } output { name: "Y" ${tensor} }\n`

const one = (site: Site) => {
  site.model("m", 1, 1)
  site.write("m/config.pbtxt", tensors)
}

/** Waits for what polling brings, at most 20 seconds; returns what is there then. */
const until = async (read: () => Promise<string>, expected: string): Promise<string> => {
  for (let attempt = 0; attempt < 200; attempt++) {
    const found = await read()
    if (found === expected) return found
    await sleep(100)
  }
  return read()
}

const json = {
  max_batch_size: 2,
  input: [{ name: "X", data_type: "TYPE_FP32", dims: [1] }],
  output: [{ name: "Y", data_type: "TYPE_FP32", dims: [1] }],
}

export const scenarios: ReadonlyArray<Scenario> = [
  {
    name: "an override stays for later loads until the directory changes",
    control: "explicit",
    prepare: one,
    run: async (site) => {
      const shown = async () => (await site.config("m"))["max_batch_size"]
      const seen: Array<unknown> = [await site.load("m"), await shown(), await site.load("m", json), await shown()]
      seen.push(await site.load("m"), await shown(), await site.unload("m"))
      seen.push(await until(site.index, "m 1 UNAVAILABLE unloaded"))
      seen.push(await site.load("m"), await shown(), await site.infer("m"))
      site.write("m/config.pbtxt", `${tensors}# changed\n`)
      seen.push(await site.load("m"), await shown())
      return seen
    },
  },
  {
    name: "an override with an object for a list, and a wrong one",
    control: "explicit",
    prepare: one,
    run: async (site) => [
      await site.load("m", { ...json, instance_group: { count: 2, kind: "KIND_CPU" } }),
      (await site.config("m"))["instance_group"],
      await site.load("m", { ...json, max_batch_size: -1 }),
      await site.infer("m"),
      await site.load("m", { ...json, foo: 1 }),
      await site.ready("models/m/ready"),
    ],
  },
  {
    name: "one bad version fails the load as a whole, and the versions that serve stay",
    control: "explicit",
    prepare: (site) => {
      one(site)
      site.write("m/config.pbtxt", `${tensors}version_policy { all {} }\n`)
    },
    run: async (site) => {
      const seen = [await site.load("m"), await site.infer("m")]
      site.model("m", 2, undefined)
      seen.push(await site.load("m"), await site.infer("m"), await site.infer("m", 1), await site.infer("m", 2))
      site.model("m", 2, 20)
      seen.push(await site.load("m"), await site.infer("m"), await site.infer("m", 1))
      return seen
    },
  },
  {
    name: "a new version, a changed one, and one that is gone",
    control: "explicit",
    prepare: one,
    run: async (site) => {
      const seen = [await site.load("m"), await site.infer("m")]
      site.model("m", 3, 3)
      seen.push(await site.infer("m"), await site.load("m"), await site.infer("m"), await site.infer("m", 1))
      site.remove("m/3")
      seen.push(await site.load("m"), await site.infer("m"), await site.unload("m"), await site.infer("m"))
      seen.push(await until(site.index, "m 1 UNAVAILABLE unloaded, m 3 UNAVAILABLE unloaded"))
      seen.push(await site.unload("m"), await site.load("nobody"))
      return seen
    },
  },
  {
    name: "poll mode follows new models, changes, and models that are gone",
    control: "poll",
    prepare: one,
    run: async (site) => {
      const seen = [await site.infer("m"), await site.load("m")]
      site.model("n", 1, 5)
      site.write("n/config.pbtxt", tensors)
      seen.push(await until(() => site.infer("n"), "5"))
      site.model("m", 1, 7)
      seen.push(await until(() => site.infer("m"), "7"))
      site.model("m", 2, 8)
      seen.push(await until(() => site.infer("m"), "8"))
      site.remove("n")
      seen.push(await until(() => site.infer("n"), "404"), await site.infer("m"))
      return seen
    },
  },
  {
    name: "a model that two repositories have is unloaded in poll mode",
    control: "poll",
    repositories: 2,
    prepare: one,
    run: async (site) => {
      const seen = [await site.infer("m")]
      site.model("m", 1, 2, 1)
      site.write("m/config.pbtxt", tensors, 1)
      seen.push(await until(() => site.infer("m"), "404"))
      site.remove("m", 1)
      seen.push(await until(() => site.infer("m"), "1"))
      return seen
    },
  },
  {
    name: "a model without a configuration under strict configuration",
    control: "explicit",
    strict: true,
    prepare: (site) => {
      one(site)
      site.model("bare", 1, 1)
    },
    run: async (site) => [await site.load("m"), await site.load("bare"), await site.ready("health/ready")],
  },
  {
    name: "levels of priority, their room, and their timeouts",
    control: "explicit",
    prepare: (site) =>
      site.held(
        "levels",
        `max_batch_size: 1 ${io} dynamic_batching {
          priority_levels: 3 default_priority_level: 2
          default_queue_policy { default_timeout_microseconds: 30000000 allow_timeout_override: true max_queue_size: 3 }
          priority_queue_policy { key: 1 value { max_queue_size: 1 } }
          priority_queue_policy { key: 3 value { timeout_action: DELAY default_timeout_microseconds: 30000000 allow_timeout_override: true } }
        }`,
      ),
    run: async (site) => {
      const loaded = await site.load("levels")
      const all = [site.send("levels", "hold")]
      await until(async () => site.executed(), "hold")
      const queue = async (id: string, parameters: object) => {
        all.push(site.send("levels", id, parameters))
        await sleep(100)
      }
      await queue("late", { priority: 3, timeout: 1 })
      await queue("low", { priority: 3 })
      await queue("default", {})
      await queue("zero", { priority: 0 })
      await queue("none such", { priority: 9 })
      await queue("high", { priority: 1 })
      await queue("full", { priority: 1 })
      await queue("also full", {})
      site.open()
      return [loaded, await Promise.all(all), site.executed()]
    },
  },
  {
    name: "a request whose time in the queue passes",
    control: "explicit",
    prepare: (site) =>
      site.held(
        "timeouts",
        `max_batch_size: 1 ${io} dynamic_batching { default_queue_policy { default_timeout_microseconds: 30000000 allow_timeout_override: true } }`,
      ),
    run: async (site) => {
      const loaded = await site.load("timeouts")
      const all = [site.send("timeouts", "hold")]
      await until(async () => site.executed(), "hold")
      all.push(site.send("timeouts", "hasty", { timeout: 1000 }), site.send("timeouts", "patient"))
      await sleep(300)
      site.open()
      return [loaded, await Promise.all(all), site.executed()]
    },
  },
  {
    name: "the queue looks again when a request expires: what waits is a preferred size",
    control: "explicit",
    prepare: (site) =>
      site.held(
        "preferred",
        `max_batch_size: 8 ${io} dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 20000000
          default_queue_policy { default_timeout_microseconds: 30000000 allow_timeout_override: true } }`,
      ),
    run: async (site) => {
      const loaded = await site.load("preferred")
      const began = performance.now()
      const all = [site.send("preferred", "one", { timeout: 1_000_000 })]
      await sleep(50)
      all.push(site.send("preferred", "two", {}, 2))
      await sleep(50)
      all.push(site.send("preferred", "three", {}, 2))
      return [loaded, await Promise.all(all), site.executed(), performance.now() - began < 5000]
    },
  },
  {
    name: "a batch goes at once when the next request cannot join it",
    control: "explicit",
    prepare: (site) =>
      site.held(
        "shapes",
        `max_batch_size: 8 ${io.replaceAll("dims: 1", "dims: -1")} dynamic_batching { max_queue_delay_microseconds: 8000000 }`,
      ),
    run: async (site) => {
      const loaded = await site.load("shapes")
      const began = performance.now()
      const first = site.send("shapes", "narrow")
      await sleep(50)
      const second = site.send("shapes", "wide", { columns: 2 })
      const answer = await first
      const isEarly = performance.now() - began < 4000
      return [loaded, answer, isEarly, await second, site.executed()]
    },
  },
]
