/**
 * Grants permits to the instances of all models, so that their executions never hold more of a resource than there is.
 * It works by plain calls, without fibers and timers. Instances without resources have no permit, and never wait.
 *
 *   acquire ─► staged, by executions × priority ─► the first one, once its resources are free ─► the batch ─► release
 *
 * Only the first staged permit may be granted. While its resources are in use, no other permit passes it. So instances
 * that need few units do not starve one that needs many.
 */
import { constVoid } from "effect/Function"
import { Context, Result } from "effect"
import * as Capacities from "./Capacities.ts"
import { Permit } from "./Permit.ts"
import type { GroupLimits, ResourceLimit } from "./Resource.ts"

/** A permit that ends with its instance. */
export interface RegisteredPermit {
  /** Undefined for an instance without resources. */
  readonly permit: Permit | undefined
  readonly close: () => void
}

/** The rate limiter of all models that are built with it. Default: none. */
export const CurrentRateLimiter = Context.Reference<RateLimiter | undefined>(
  "@nereid/core/internal/limiter/RateLimiter",
  { defaultValue: () => undefined },
)

export class RateLimiter {
  readonly #limits: ReadonlyArray<ResourceLimit> | undefined
  readonly #schedule: (task: () => void) => void
  readonly #instances = new Set<Capacities.Needs>()
  #capacities: Capacities.Units = new Map()
  /** Units that executions hold, by pool. */
  readonly #used = new Map<string, number>()
  /** The first one goes next. */
  readonly #staged: Array<Permit> = []
  #isScheduled = false

  /** `schedule` runs a task in another turn. Without limits, there are as many units as any instance needs. */
  constructor(limits: ReadonlyArray<ResourceLimit> | undefined, schedule: (task: () => void) => void) {
    this.#limits = limits
    this.#schedule = schedule
  }

  /** Adds an instance, or returns the reason why it could never execute. The CPU counts as device 0. */
  register(device: number, { resources = [], priority = 1 }: GroupLimits): Result.Result<RegisteredPermit, string> {
    if (resources.length === 0) return Result.succeed({ permit: undefined, close: constVoid })
    const needs = { device, resources }
    const capacities = Capacities.make([...this.#instances, needs], this.#limits)
    if (Result.isFailure(capacities)) return Result.fail(capacities.failure)
    this.#instances.add(needs)
    this.#setCapacities(capacities.success)
    const units = new Map([...Capacities.held(needs)].filter(([, count]) => count > 0))
    const permit = units.size === 0 ? undefined : new Permit(this, units, priority)
    const close = () => {
      if (!this.#instances.delete(needs)) return
      if (permit !== undefined) this.#close(permit)
      // Instances that were valid together are valid without one of them.
      this.#setCapacities(Result.getOrElse(Capacities.make(this.#instances, this.#limits), () => this.#capacities))
    }
    return Result.succeed({ permit, close })
  }

  readonly acquire = (permit: Permit): boolean => {
    if (permit.state === "granted") {
      permit.state = "held"
      return true
    }
    if (permit.state === "idle") this.#stage(permit)
    if (this.#staged[0] !== permit || !this.#isFree(permit)) return false
    this.#grant(permit)
    permit.state = "held"
    return true
  }

  readonly withdraw = (permit: Permit): void => {
    if (permit.state === "staged") {
      this.#staged.splice(this.#staged.indexOf(permit), 1)
      permit.state = "idle"
    } else if (permit.state === "granted") {
      permit.executions -= 1
      this.#free(permit)
    } else return
    this.#wake()
  }

  readonly release = (permit: Permit, isReady: boolean): void => {
    if (permit.state !== "held") return
    this.#free(permit)
    // Before the others go: it may still be the first one.
    if (isReady) this.#stage(permit)
    this.#wake()
  }

  #close(permit: Permit): void {
    this.withdraw(permit)
    this.release(permit, false)
    permit.state = "closed"
    permit.onGranted = constVoid
  }

  #setCapacities(capacities: Capacities.Units): void {
    this.#capacities = capacities
    this.#wake()
  }

  #stage(permit: Permit): void {
    const { rank } = permit
    permit.state = "staged"
    const index = this.#staged.findLastIndex((other) => other.rank <= rank)
    this.#staged.splice(index + 1, 0, permit)
  }

  #isFree({ units }: Permit): boolean {
    for (const [pool, count] of units) {
      if ((this.#used.get(pool) ?? 0) + count > (this.#capacities.get(pool) ?? 0)) return false
    }
    return true
  }

  /** The first staged permit takes its resources. */
  #grant(permit: Permit): void {
    this.#staged.shift()
    permit.state = "granted"
    permit.executions += 1
    for (const [pool, count] of permit.units) this.#used.set(pool, (this.#used.get(pool) ?? 0) + count)
  }

  #free(permit: Permit): void {
    permit.state = "idle"
    for (const [pool, count] of permit.units) {
      const left = (this.#used.get(pool) ?? 0) - count
      if (left > 0) this.#used.set(pool, left)
      else this.#used.delete(pool)
    }
  }

  #wake(): void {
    if (this.#isScheduled || this.#staged.length === 0) return
    this.#isScheduled = true
    this.#schedule(this.#turn)
  }

  /** Grants permits in order. After a batch that ended at once, the rest waits for another turn of the event loop. */
  readonly #turn = (): void => {
    this.#isScheduled = false
    while (!this.#isScheduled) {
      const [first] = this.#staged
      if (first === undefined || !this.#isFree(first)) return
      this.#grant(first)
      first.onGranted()
      if (first.state === "granted") this.withdraw(first)
    }
  }
}
