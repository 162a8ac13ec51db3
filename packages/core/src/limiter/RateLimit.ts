/** The rate limiter as a layer around models, servers and repositories. RateLimiter.ts decides what may execute. */
import { Effect, Layer, Scheduler } from "effect"
import { CurrentRateLimiter, RateLimiter } from "./RateLimiter.ts"
import type { ResourceLimit } from "./Resource.ts"

export type { GroupLimits, Resource, ResourceLimit } from "./Resource.ts"

/** Limits of the rate limiter. */
export interface Options {
  /**
   * Units of each resource. A resource that is not listed is unavailable: a model that needs it cannot load. Default:
   * as many units as any loaded instance needs.
   */
  readonly resources?: ReadonlyArray<ResourceLimit>
}

/**
 * Limits executions to those whose resources are free. The models and servers that are built with this layer share the
 * resources, and so do the repositories of these servers:
 *
 * ```ts
 * const DigitsLive = Onnx.layer(Digits, {
 *   file: "digits.onnx",
 *   instances: [{ rateLimiter: { resources: [{ name: "memory", count: 4 }] } }],
 * })
 *
 * Server.layer([Digits], { http: 8000 }).pipe(
 *   Layer.provide(DigitsLive),
 *   Layer.provide(RateLimit.layer({ resources: [{ name: "memory", count: 6 }] })),
 * )
 * ```
 *
 * Without this layer, the resources of instances have no effect. For `Server.start`, pass its option `rateLimit`.
 * @throws TypeError if a count or a device is not an integer of at least 0
 */
export const layer = ({ resources }: Options = {}): Layer.Layer<never> => {
  for (const { name, count, device = 0 } of resources ?? []) {
    for (const [option, value] of [["count", count] as const, ["device", device] as const]) {
      if (Number.isSafeInteger(value) && value >= 0) continue
      throw new TypeError(
        `RateLimit: ${option} of resource "${name}" must be an integer of at least 0, but ${value} was given.`,
      )
    }
  }
  return Layer.effect(
    CurrentRateLimiter,
    Effect.map(Scheduler.Scheduler, (scheduler) => {
      const tasks = scheduler.makeDispatcher()
      return new RateLimiter(resources, (task) => tasks.scheduleTask(task, 0))
    }),
  )
}
