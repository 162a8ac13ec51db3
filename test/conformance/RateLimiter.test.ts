/**
 * Executions that share resources, over each transport: their order, their limits, and loads that the resources do not
 * allow. Each test has a separate server, whose models are scripts that block until the test ends their execution.
 */
import type { RateLimit } from "@nereid/core"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Effect, Exit, Scope } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { repository } from "../fixtures/repository.ts"
import * as RepositoryClient from "../RepositoryClient.ts"
import { blocking, blockedExecutions as executions, blockingBetween, echo } from "./BlockedExecutions.ts"
import { until } from "./Counters.ts"
import { GrpcConnection, messages } from "./GrpcConnection.ts"
import { encode } from "./GrpcEncoding.ts"
import { tensor } from "./InferRequest.ts"

const anywhere = { host: "127.0.0.1", port: 0 } as const

const single = "data_type: TYPE_FP32 dims: 1"
const io = `input { name: "X" ${single} } output { name: "Y" ${single} }\n`

/** An instance group whose executions hold these resources, global ones with a name that begins so. */
const group = (resources: Readonly<Record<string, number>>, more = "", count = 1): string => {
  const named = Object.entries(resources).map(
    ([name, count]) =>
      `resources { name: "${name}" count: ${count} ${name.startsWith("global") ? "global: true" : ""} }`,
  )
  const limiter = named.length === 0 ? "" : `rate_limiter { ${named.join(" ")} ${more} }`
  return `instance_group { count: ${count} kind: KIND_CPU ${limiter} }\n`
}

const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(Scope.provide(effect, scope))
}

const limitedTo = (name: string, available: number, needed: number) =>
  `Resource count for "${name}" is limited to ${available} which will prevent scheduling of one or more model instances, the minimum required count is ${needed}`

const refusal = (name: string, problem: string) =>
  `InvalidRequest: load failed for model '${name}': version 1 is at UNAVAILABLE state: Invalid argument: ${problem};`

interface Settings {
  readonly limits?: RateLimit.Options["resources"]
  readonly isLimited?: boolean
  readonly scripts?: Readonly<Record<string, string>>
}

describe.each(["HTTP", "gRPC"] as const)("over %s", (transport) => {
  /** Serves a blocking script for each configuration, unless there is another script for it. */
  const serve = async (
    configs: Readonly<Record<string, string>>,
    { limits, isLimited = true, scripts = {} }: Settings = {},
  ) => {
    const fixture = await scoped(repository)
    const write = (name: string, config: string, script = blocking(name)) => {
      fixture.write(`${name}/1/model.js`, script)
      fixture.write(
        `${name}/config.pbtxt`,
        config.includes("max_batch_size") ? config : `max_batch_size: 4 ${io}${config}`,
      )
    }
    for (const [name, config] of Object.entries(configs)) write(name, config, scripts[name])
    const models = Repository.layer({ directories: [fixture.path], control: "explicit", load: ["*"] })
    const server = await Server.start([], models, {
      http: anywhere,
      grpc: anywhere,
      metrics: false,
      drainTimeout: "1 second",
      ...(isLimited ? { rateLimit: limits === undefined ? {} : { resources: limits } } : {}),
    })
    onTestFinished(async () => {
      executions.reset()
      await server.stop()
    })
    const ports = { http: server.http.port, grpc: server.grpc.port }
    const client = await scoped(RepositoryClient.make[transport](ports))
    const pending = (name: string) =>
      server.models.find(({ description }) => description.name === name)?.life.pending() ?? 0
    return {
      ...client,
      ports,
      write,
      pending,
      send: (name: string, count = 1) => Array.from({ length: count }, (_, x) => client.infer(name, x)),
      running: (...names: ReadonlyArray<string>) => until(() => String(executions.running) === String(names)),
    }
  }

  /** Ends executions one after the other; returns the order in which they began. */
  const endAll = async (count: number): Promise<ReadonlyArray<string>> => {
    const order: Array<string> = []
    while (order.length < count) {
      await until(() => executions.running.length === 1)
      order.push(...executions.running)
      executions.end()
    }
    return order
  }

  it(
    "executions that share a resource take turns, wait in the queue, and count as pending " +
      "(A12.rate-limiter.shared@both, A12.rate-limiter.pending@both)",
    async () => {
      const { send, running, pending, infer } = await serve(
        { a: group({ R: 1 }), b: group({ R: 1 }), free: group({}) },
        { scripts: { free: echo } },
      )
      const first = send("a")
      await running("a")
      const second = send("b")
      await until(() => pending("b") === 1)
      expect(await infer("free", 3)).toBe(3)
      expect([executions.begun, pending("b")]).toEqual([["a"], 1])
      executions.end()
      await running("b")
      expect([await Promise.all(first), pending("b")]).toEqual([[0], 0])
      executions.end()
      expect(await Promise.all(second)).toEqual([0])
    },
  )

  it("each device has its own units, and all share a global resource (A12.rate-limiter.global@both)", async () => {
    const { send, running, pending } = await serve({
      a: group({ R: 1, global: 1 }),
      b: group({ global: 2 }),
      c: group({ R: 1 }),
    })
    const first = send("a")
    await running("a")
    const second = send("b")
    await until(() => pending("b") === 1)
    executions.end()
    await running("b")
    const third = send("c")
    await running("b", "c")
    executions.end()
    executions.end()
    expect(await Promise.all([...first, ...second, ...third])).toEqual([0, 0, 0])
  })

  it("a batch that waits for resources takes the requests that come (A12.rate-limiter.batch@both)", async () => {
    const { send, running, pending } = await serve({ a: group({ R: 1 }), b: `${group({ R: 1 })} dynamic_batching {}` })
    const first = send("a")
    await running("a")
    const others = send("b", 3)
    await until(() => pending("b") === 3)
    executions.end()
    await running("b")
    expect(executions.begun).toEqual(["a", "b of 3"])
    executions.end()
    expect(await Promise.all([...first, ...others])).toEqual([0, 0, 1, 2])
  })

  it("the fewest executions, times priority, go first (A12.rate-limiter.order@both)", async () => {
    const { send, running, pending } = await serve({
      one: `max_batch_size: 1 ${io}${group({ R: 1 }, "priority: 1")}`,
      two: `max_batch_size: 1 ${io}${group({ R: 1 }, "priority: 2")}`,
    })
    const requests = send("one", 8)
    await running("one")
    requests.push(...send("two", 8))
    await until(() => pending("one") + pending("two") === 15)
    const order = await endAll(16)
    expect(order.slice(0, 9)).toEqual(["one", "two", "one", "two", "one", "one", "two", "one", "one"])
    await Promise.all(requests)
  })

  it("a model that was just loaded catches up (A12.rate-limiter.order.fresh@both)", async () => {
    const { send, running, pending, write, load } = await serve({ old: `max_batch_size: 1 ${io}${group({ R: 1 })}` })
    const before = send("old", 3)
    await endAll(3)
    await Promise.all(before)
    write("fresh", `max_batch_size: 1 ${io}${group({ R: 1 })}`)
    expect(await load("fresh")).toBeUndefined()
    const requests = send("old", 2)
    await running("old")
    requests.push(...send("fresh", 3))
    await until(() => pending("fresh") === 3)
    expect(await endAll(5)).toEqual(["old", "fresh", "fresh", "fresh", "old"])
    await Promise.all(requests)
  })

  it("an instance that needs more than is free blocks those behind it (A12.rate-limiter.head@both)", async () => {
    const { send, running, pending, infer } = await serve(
      { a: group({ R: 1 }), b: group({ R: 2 }), c: group({ R: 1 }), free: group({}) },
      { scripts: { free: echo } },
    )
    const first = send("a")
    await running("a")
    const second = send("b")
    await until(() => pending("b") === 1)
    const third = send("c")
    await until(() => pending("c") === 1)
    // An instance without resources waits for nobody.
    expect(await infer("free", 1)).toBe(1)
    expect(executions.begun).toEqual(["a"])
    expect(await endAll(3)).toEqual(["a", "b", "c"])
    await Promise.all([...first, ...second, ...third])
  })

  it("instances of one model share a resource, too (A12.rate-limiter.instances@both)", async () => {
    const { send, running, pending } = await serve(
      { m: `max_batch_size: 1 ${io}${group({ R: 1 }, "", 2)}${group({ R: 2 })}` },
      { limits: [{ name: "R", count: 2 }] },
    )
    const requests = send("m", 3)
    await until(() => executions.begun.length + pending("m") === 3)
    await running("m", "m")
    expect(pending("m")).toBe(1)
    executions.end()
    executions.end()
    await running("m")
    executions.end()
    expect(await Promise.all(requests)).toEqual([0, 1, 2])
  })

  it(
    "needs that exceed the limits, and resources named in two ways, are refused (A12.rate-limiter.limits@both, " +
      "A12.rate-limiter.limits.unlisted@both, A12.rate-limiter.limits.global@both, A12.rate-limiter.kinds@both)",
    async () => {
      const limits = [
        { name: "R", count: 4 },
        { name: "R", count: 9, device: 1 },
        { name: "global", count: 2, device: 5 },
      ]
      const { load, index, write } = await serve({ fits: group({ R: 4, global: 2 }) }, { limits })
      write("much", group({ R: 2 }) + group({ R: 5 }))
      write("unlisted", group({ r: 1 }))
      write("wide", group({ global: 3 }))
      expect(await load("much")).toBe(refusal("much", limitedTo("R", 4, 5)))
      expect(await load("unlisted")).toBe(refusal("unlisted", limitedTo("r", 0, 1)))
      expect(await load("wide")).toBe(refusal("wide", limitedTo("global", 2, 3)))
      write("kinds", 'instance_group { rate_limiter { resources { name: "R" count: 1 global: true } } }')
      const kinds = 'Resource "R" is present as both global and device-specific resource in the model configuration.'
      expect(await load("kinds")).toBe(refusal("kinds", kinds))
      const reason = `Invalid argument: ${limitedTo("R", 4, 5)}`
      expect(await index()).toContainEqual({ name: "much", version: "1", state: "UNAVAILABLE", reason })
      expect(await index(true)).toMatchObject([{ name: "fits" }])
    },
  )

  it(
    "a change of instances that needs too much leaves the old ones, and another one takes their place " +
      "(A12.rate-limiter.update@both, A12.rate-limiter.update.failed@both)",
    async () => {
      const { load, write, config, send, running } = await serve(
        { m: group({ R: 1 }), other: group({ R: 1 }) },
        { limits: [{ name: "R", count: 2 }] },
      )
      const requests = [...send("m"), ...send("other")]
      await until(() => executions.running.length === 2)
      write("m", group({ R: 3 }, "priority: 5"))
      expect(await load("m")).toBe(refusal("m", limitedTo("R", 2, 3)))
      executions.reset()
      expect(await Promise.all(requests)).toEqual([0, 0])
      write("m", group({ R: 2 }, "priority: 5"))
      expect(await load("m")).toBeUndefined()
      expect(await config("m")).toMatchObject({
        instance_group: [{ rate_limiter: { resources: [{ name: "R", global: false, count: 2 }], priority: 5 } }],
      })
      const after = [...send("m")]
      await running("m")
      after.push(...send("other"))
      expect(await endAll(2)).toEqual(["m", "other"])
      expect(await Promise.all(after)).toEqual([0, 0])
    },
  )

  it("without limits, units follow the loaded instances (A12.rate-limiter.default@both)", async () => {
    const { load, unload, write, send, running, pending, index } = await serve({
      a: group({ R: 1 }),
      b: group({ R: 1 }),
    })
    write("big", group({ R: 2 }))
    expect(await load("big")).toBeUndefined()
    const both = [...send("a"), ...send("b")]
    await until(() => executions.running.length === 2)
    executions.reset()
    await Promise.all(both)
    expect(await unload("big")).toBeUndefined()
    await until(async () => (await index()).some(({ name, reason }) => name === "big" && reason === "unloaded"))
    const first = send("a")
    await running("a")
    const second = send("b")
    await until(() => pending("b") === 1)
    expect(executions.running).toEqual(["a"])
    expect(await load("big")).toBeUndefined()
    await running("a", "b")
    executions.reset()
    expect(await Promise.all([...first, ...second])).toEqual([0, 0])
  })

  it(
    "callers that leave, failures and unloads give their resources back (A12.rate-limiter.cancel@both, " +
      "A12.rate-limiter.fail@both, A12.rate-limiter.unload@both)",
    async () => {
      const { send, running, pending, infer, unload } = await serve({
        a: group({ R: 1 }),
        b: group({ R: 1 }),
        c: group({ R: 1 }),
      })
      const [waits, executes] = [new AbortController(), new AbortController()]
      const first = infer("a", 0, executes).catch(String)
      await running("a")
      const second = infer("b", 0, waits).catch(String)
      await until(() => pending("b") === 1)
      const third = send("c")
      await until(() => pending("c") === 1)
      waits.abort()
      await until(() => pending("b") === 0)
      executes.abort()
      executions.end("a")
      await running("c")
      executions.end("c", new Error("broken"))
      expect(await Promise.all(third)).toEqual([expect.stringContaining("broken")])
      await Promise.all([first, second])
      const last = send("b")
      await running("b")
      expect(await unload("b")).toBeUndefined()
      const next = send("a")
      await until(() => pending("a") === 1)
      executions.end("b")
      await running("a")
      executions.end("a")
      expect(await Promise.all([...last, ...next])).toEqual([0, 0])
    },
  )

  it("an ensemble holds only what its step holds (A12.rate-limiter.ensemble@both)", async () => {
    const step = (model: string, input: string, output: string) =>
      `step { model_name: "${model}" model_version: -1 input_map { key: "X" value: "${input}" } output_map { key: "Y" value: "${output}" } }`
    const { infer, running } = await serve({
      a: group({ R: 1 }),
      b: group({ R: 1 }),
      both: `max_batch_size: 4 ${io} platform: "ensemble" ensemble_scheduling { ${step("a", "X", "t")} ${step("b", "t", "Y")} }`,
    })
    const reply = infer("both", 5)
    await running("a")
    executions.end()
    await running("b")
    executions.end()
    expect(await reply).toBe(5)
  })

  it("a decoupled model holds its resources up to its last response (A12.rate-limiter.decoupled@both)", async () => {
    const { ports, send, running, pending } = await serve(
      {
        streams: `max_batch_size: 4 ${io} ${group({ R: 1 })} model_transaction_policy { decoupled: true }`,
        b: group({ R: 1 }),
      },
      { scripts: { streams: blockingBetween("streams") } },
    )
    const responses = stream[transport](ports)
    await running("streams")
    const other = send("b")
    await until(() => pending("b") === 1)
    expect(executions.running).toEqual(["streams"])
    executions.end()
    expect(await responses).toBe(2)
    await running("b")
    executions.end()
    expect(await Promise.all(other)).toEqual([0])
  })

  it("a warm-up needs no resources (A12.rate-limiter.warm-up@both)", async () => {
    const { write, load, send, running } = await serve({ a: group({ R: 1 }) })
    const first = send("a")
    await running("a")
    const warmUp = `model_warmup { name: "w" batch_size: 1 inputs { key: "X" value { ${single} zero_data: true } } }`
    write("warm", `${group({ R: 1 })} ${warmUp}`)
    expect(await load("warm")).toBeUndefined()
    executions.end()
    expect(await Promise.all(first)).toEqual([0])
  })

  it("without the rate limiter, resources have no effect (A12.rate-limiter.off@both)", async () => {
    const { send, config } = await serve({ a: group({ R: 1 }), b: group({ R: 1 }) }, { isLimited: false })
    const requests = [...send("a"), ...send("b")]
    await until(() => executions.running.length === 2)
    executions.reset()
    expect(await Promise.all(requests)).toEqual([0, 0])
    expect(await config("a")).toMatchObject({
      instance_group: [{ rate_limiter: { resources: [{ name: "R", global: false, count: 1 }], priority: 0 } }],
    })
  })
})

interface Ports {
  readonly http: number
  readonly grpc: number
}

/** Returns the number of responses that the decoupled model sends. */
const stream = {
  HTTP: async ({ http }: Ports): Promise<number> => {
    const url = `http://127.0.0.1:${http}/v2/models/streams/generate_stream`
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ X: 1 }) })
    return (await response.text()).match(/^data: /gm)?.length ?? 0
  },
  gRPC: async ({ grpc }: Ports): Promise<number> => {
    const connection = await GrpcConnection.open(grpc)
    const request = { model: "streams", inputs: [tensor("X", "FP32", [1, 1], [1])] }
    const reply = await connection.call({
      method: "ModelStreamInfer",
      chunks: [encode(request, "gRPC stream")],
    })
    connection.close()
    return messages(reply.body).length
  },
}
