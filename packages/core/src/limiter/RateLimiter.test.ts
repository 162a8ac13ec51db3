/** Permits of the rate limiter: their order, the units that there are, and what is refused. */
import { Result } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type RegisteredPermit, RateLimiter } from "./RateLimiter.ts"
import type { Permit } from "./Permit.ts"
import type { Resource, ResourceLimit } from "./Resource.ts"

/** A rate limiter whose turns come when `turn` is called. */
const harness = (limits?: ReadonlyArray<ResourceLimit>) => {
  const tasks: Array<() => void> = []
  const limiter = new RateLimiter(limits, (task) => tasks.push(task))
  /** Instances that hold their resources, in the order in which they got them. */
  const log: Array<string> = []
  const register = (resources: ReadonlyArray<Resource>, { device = 0, priority = 1 } = {}): RegisteredPermit =>
    Result.getOrThrowWith(limiter.register(device, { resources, priority }), (message) => new Error(message))
  const instance = (
    name: string,
    resources: ReadonlyArray<Resource>,
    options?: { device?: number; priority?: number },
  ) => {
    const { permit, close } = register(resources, options)
    if (permit === undefined) throw new Error(`${name} has no permit`)
    const start = () => {
      const hasStarted = permit.acquire()
      if (hasStarted) log.push(name)
      return hasStarted
    }
    permit.onGranted = start
    return { permit, start, end: (isReady = false) => permit.release(isReady), close }
  }
  const turn = () => {
    for (let task = tasks.shift(); task !== undefined; task = tasks.shift()) task()
  }
  const problem = (resources: ReadonlyArray<Resource>, device = 0) =>
    Result.match(limiter.register(device, { resources }), { onFailure: (message) => message, onSuccess: () => "fits" })
  return { limiter, instance, register, problem, turn, log, tasks }
}

const r = (count: number, name = "R"): Resource => ({ name, count })
const global = (count: number, name = "R"): Resource => ({ name, count, global: true })
const limited = (count: number, needed: number) =>
  `Resource count for "R" is limited to ${count} which will prevent scheduling of one or more model instances, the minimum required count is ${needed}`
const contradiction = (name = "R") =>
  `Resource "${name}" is present as both global and device-specific resource in the model configuration.`

describe("capacities", () => {
  it("without limits, there is as much as one instance needs", () => {
    const { instance, turn, log } = harness()
    const [big, small, other] = [instance("big", [r(4)]), instance("small", [r(2)]), instance("other", [r(2)])]
    expect([small.start(), other.start(), big.start()]).toEqual([true, true, false])
    small.end()
    turn()
    expect(log).toEqual(["small", "other"])
    other.end()
    turn()
    expect(log).toEqual(["small", "other", "big"])
  })

  it("each device has its own units, and a global resource one pool", () => {
    const { instance } = harness()
    const [first, second] = [instance("first", [r(1)]), instance("second", [r(1)], { device: 1 })]
    expect([first.start(), second.start()]).toEqual([true, true])
    const [a, b] = [instance("a", [global(1, "G")]), instance("b", [global(1, "G")], { device: 1 })]
    expect([a.start(), b.start()]).toEqual([true, false])
  })

  it("limits of a device and of all devices: the larger one applies; a global resource has the largest of all", () => {
    const { problem } = harness([
      { name: "R", count: 3 },
      { name: "R", count: 5, device: 1 },
      { name: "R", count: 2, device: 2 },
    ])
    expect([problem([r(4)]), problem([r(5)], 1), problem([r(4)], 2)]).toEqual([limited(3, 4), "fits", limited(3, 4)])
    const { problem: ofGlobal } = harness([{ name: "R", count: 5, device: 7 }])
    expect([ofGlobal([global(5)]), ofGlobal([global(6)])]).toEqual(["fits", limited(5, 6)])
  })

  it("with limits, a resource without one is unavailable, and no limits at all are limits too", () => {
    expect(harness([{ name: "other", count: 9 }]).problem([r(1)])).toBe(limited(0, 1))
    expect(harness([]).problem([r(1)])).toBe(limited(0, 1))
    expect(harness([]).problem([r(0)])).toBe("fits")
  })

  it("of several missing resources, the error names a global one, and the first by name", () => {
    const { problem } = harness([])
    expect(problem([r(4, "b"), r(4)])).toBe(limited(0, 4))
    expect(problem([r(4, "A"), global(4)])).toBe(limited(0, 4))
  })

  it("a resource is either global or of devices, over all instances", () => {
    const { instance, problem } = harness()
    const { close } = instance("device", [r(1)])
    expect(problem([global(1)])).toBe(contradiction())
    expect(problem([r(1, "S"), global(1, "S")])).toBe(contradiction("S"))
    close()
    expect(problem([global(1)])).toBe("fits")
    expect(problem([r(1)], 1)).toBe(contradiction())
  })

  it("a refused instance changes nothing, and one that goes takes its units with it", () => {
    const { instance, problem } = harness([{ name: "R", count: 3 }])
    expect(problem([r(4)])).toBe(limited(3, 4))
    expect(instance("a", [r(3)]).start()).toBe(true)
    const free = harness()
    const big = free.instance("big", [r(2)])
    const [a, b] = [free.instance("a", [r(1)]), free.instance("b", [r(1)])]
    expect([a.start(), b.start()]).toEqual([true, true])
    a.end()
    b.end()
    big.close()
    expect([a.start(), b.start()]).toEqual([true, false])
  })

  it("an instance that needs more lets those go that wait", () => {
    const { instance, turn, log } = harness()
    const [a, b] = [instance("a", [r(1)]), instance("b", [r(1)])]
    expect([a.start(), b.start()]).toEqual([true, false])
    instance("big", [r(2)])
    turn()
    expect(log).toEqual(["a", "b"])
  })

  it("the last count of a resource that is named twice applies, and 0 units need no permit", () => {
    const { instance, register } = harness([{ name: "R", count: 2 }])
    expect(register([r(0)]).permit).toBeUndefined()
    expect(register([]).permit).toBeUndefined()
    const [a, b] = [instance("a", [r(2), r(1)]), instance("b", [r(1)])]
    expect([a.start(), b.start()]).toEqual([true, true])
  })
})

describe("order", () => {
  it("the fewest executions go first, and equal ones in the order in which they began to wait", () => {
    const { instance, turn, log } = harness()
    const [a, b, c] = [instance("a", [r(1)]), instance("b", [r(1)]), instance("c", [r(1)])]
    for (const each of [a, b, c]) each.start()
    for (const each of [a, b, c, a, b, c]) {
      each.end(true)
      turn()
    }
    expect(log).toEqual(["a", "b", "c", "a", "b", "c", "a"])
  })

  it("an execution counts its priority: with 2, half as often; 0 is 1", () => {
    const { instance, turn, log } = harness()
    const instances = new Map([
      ["zero", instance("zero", [r(1)], { priority: 0 })],
      ["one", instance("one", [r(1)], { priority: 1 })],
      ["two", instance("two", [r(1)], { priority: 2 })],
    ])
    for (const { start } of instances.values()) start()
    for (let index = 0; index < 100; index++) {
      instances.get(log.at(-1) ?? "")?.end(true)
      turn()
    }
    const count = (name: string) => log.filter((each) => each === name).length
    expect([count("zero"), count("one"), count("two")]).toEqual([40, 40, 21])
  })

  it("one that was just loaded catches up", () => {
    const { instance, turn, log } = harness()
    const old = instance("old", [r(1)])
    for (let index = 0; index < 3; index++) {
      old.start()
      old.end()
    }
    const fresh = instance("fresh", [r(1)])
    old.start()
    fresh.start()
    old.end(true)
    turn()
    for (let index = 0; index < 3; index++) {
      fresh.end(true)
      turn()
    }
    expect(log.slice(4)).toEqual(["fresh", "fresh", "fresh", "fresh"])
  })

  it("none passes the first one, even if its own resources are free", () => {
    const { instance, turn, log } = harness()
    const [a, b, c] = [instance("a", [r(1)]), instance("b", [r(1)]), instance("c", [r(1, "S")])]
    expect([a.start(), b.start(), c.start()]).toEqual([true, false, false])
    a.end()
    turn()
    expect(log).toEqual(["a", "b", "c"])
  })

  it("one that still has work waits before the others go", () => {
    const { instance, turn, log } = harness()
    const [one, five] = [instance("one", [r(1)]), instance("five", [r(1)], { priority: 5 })]
    five.start()
    five.end()
    one.start()
    five.start()
    one.end(true)
    turn()
    expect(log).toEqual(["five", "one", "one"])
  })
})

describe("release", () => {
  it("a permit that is not used goes to the next one, and does not count", () => {
    const { instance, turn, log } = harness()
    const [a, b, c] = [instance("a", [r(1)]), instance("b", [r(1)]), instance("c", [r(1)])]
    a.start()
    b.start()
    c.start()
    b.permit.onGranted = () => {}
    a.end()
    turn()
    expect([log, b.permit.executions]).toEqual([["a", "c"], 0])
  })

  it("one that gives up or goes no longer blocks the others", () => {
    const { instance, turn, log } = harness()
    const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => instance(name, [r(name === "c" ? 2 : 1), r(1, name)]))
    instance("most", [r(2)])
    for (const each of [a, b, c, d]) each?.start()
    expect(log).toEqual(["a", "b"])
    a?.end()
    turn()
    expect(log).toEqual(["a", "b"])
    c?.permit.withdraw()
    turn()
    expect(log).toEqual(["a", "b", "d"])
    a?.start()
    b?.close()
    turn()
    expect(log).toEqual(["a", "b", "d", "a"])
  })

  it("a second release, and a release after the end of the instance, free nothing", () => {
    const { instance } = harness()
    const [a, b] = [instance("a", [r(1)]), instance("b", [r(1)])]
    a.start()
    a.end()
    a.end()
    expect(b.start()).toBe(true)
    b.close()
    expect(a.start()).toBe(true)
    b.end()
    expect([b.start(), instance("c", [r(1)]).start()]).toEqual([false, false])
  })

  it("a batch that ends at once lets other callbacks run before the next one", () => {
    const { instance, tasks, log } = harness()
    const a = instance("a", [r(1)])
    const b = instance("b", [r(1)])
    b.permit.onGranted = () => {
      if (b.start()) b.end(log.length < 4)
    }
    a.start()
    b.start()
    a.end()
    for (const length of [2, 3, 4]) {
      expect(tasks).toHaveLength(1)
      tasks.shift()?.()
      expect(log).toHaveLength(length)
    }
  })
})

/** Instances of random needs whose batches begin and end at random. */
it("no more is used than there is, and every instance goes on", () => {
  const need = fc.record({
    device: fc.nat(1),
    priority: fc.nat(3),
    resources: fc.uniqueArray(
      fc.record({ name: fc.constantFrom("A", "B", "G"), count: fc.integer({ min: 1, max: 4 }) }),
      {
        selector: ({ name }) => name,
        minLength: 1,
      },
    ),
  })
  const step = fc.record({
    instance: fc.nat(),
    action: fc.constantFrom("start", "end", "again", "withdraw", "close", "turn"),
  })
  fc.assert(
    fc.property(
      fc.array(need, { minLength: 1, maxLength: 8 }),
      fc.array(step, { maxLength: 200 }),
      fc.boolean(),
      (needs, steps, isExplicit) => {
        const limits = ["A", "B", "G"].map((name) => ({ name, count: 5 }))
        const { instance, turn } = harness(isExplicit ? limits : undefined)
        const instances = needs.map(({ resources, ...options }, index) => {
          const named = resources.map((resource) => ({ ...resource, global: resource.name === "G" }))
          return { ...instance(String(index), named, options), ...options, named, isClosed: false }
        })
        const check = () => {
          const used = new Map<string, number>()
          const most = new Map<string, number>()
          for (const { permit, named, device, isClosed } of instances) {
            for (const { name, count, global } of named) {
              const pool = global ? name : name + device
              if (permit.state === "held") used.set(pool, (used.get(pool) ?? 0) + count)
              if (!isClosed) most.set(pool, Math.max(count, most.get(pool) ?? 0))
            }
          }
          return { used, most }
        }
        for (const { instance: number, action } of steps) {
          const chosen = instances[number % instances.length]
          if (chosen === undefined) continue
          const { permit, start, end, close } = chosen
          const before = check().used
          if (action === "start") start()
          if (action === "end") end()
          if (action === "again") end(true)
          if (action === "withdraw") permit.withdraw()
          if (action === "turn") turn()
          if (action === "close") {
            close()
            chosen.isClosed = true
          }
          const { used, most } = check()
          for (const [pool, count] of used) {
            // The units of an instance that has gone may still be used.
            const limit = isExplicit ? 5 : Math.max(most.get(pool) ?? 0, before.get(pool) ?? 0)
            expect(count).toBeLessThanOrEqual(limit)
          }
        }
        // Everything that is released lets the others go, each of them in the end.
        const open = instances.filter(({ isClosed }) => !isClosed)
        const waiting = new Set<Permit>()
        for (const { permit, start } of open) {
          permit.release(false)
          waiting.add(permit)
          permit.onGranted = () => {
            if (permit.acquire()) waiting.delete(permit)
          }
          if (start()) waiting.delete(permit)
        }
        for (let round = 0; waiting.size > 0 && round <= open.length; round++) {
          for (const { permit } of open) permit.release(false)
          turn()
        }
        expect(waiting.size).toBe(0)
      },
    ),
    { numRuns: 500 },
  )
})
