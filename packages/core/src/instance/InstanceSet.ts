/**
 * The instances of a model, each in a separate scope. They are built from a plan and can be exchanged for those of
 * another plan; instances that are the same in both remain. Pool.ts assigns batches to them.
 */
import { Effect, Exit, Result, Scope } from "effect"
import type { Permit } from "../limiter/Permit.ts"
import { RateLimitError } from "../limiter/RateLimitError.ts"
import { CurrentRateLimiter } from "../limiter/RateLimiter.ts"
import type { Instance, InstanceGroup } from "./Instance.ts"
import * as InstancePlan from "./InstancePlan.ts"

export interface InstanceSource<E, R> {
  /** Which there are at first. */
  readonly plan: InstancePlan.InstancePlan
  /** One of them, in a scope that is closed once it is not needed any more. */
  readonly build: (planned: InstancePlan.PlannedInstance) => Effect.Effect<Instance, E, R>
  /** Whether several are built at the same time. Default false. */
  readonly isConcurrent?: boolean
}

interface Built {
  readonly planned: InstancePlan.PlannedInstance
  readonly instance: Instance
  readonly permit: Permit | undefined
  readonly scope: Scope.Closeable
}

/** The instances of another plan, loaded unless an equal instance exists. */
export interface PreparedInstances {
  /** Replaces the set by these instances. Removed instances finish their batches, and are then released. */
  readonly commit: Effect.Effect<void>
}

export interface InstanceSet<E> {
  readonly instances: ReadonlyArray<Instance>
  readonly groups: ReadonlyArray<InstanceGroup>
  /**
   * Builds the instances of the plan that do not exist yet, and closes them with the scope unless the result is
   * committed. Committing passes the set to `exchange`, which completes once the removed instances have finished their
   * batches. Then their scopes are closed. Not for concurrent plans.
   */
  readonly prepare: (
    plan: InstancePlan.InstancePlan,
    exchange: (instances: ReadonlyArray<Instance>) => Effect.Effect<void>,
  ) => Effect.Effect<PreparedInstances, E, Scope.Scope>
}

/** `warmUp` is what each passes before it is one of them. All there are at the end of the scope are closed then. */
export const make = Effect.fnUntraced(function* <E, EW = never>(
  { plan, build, isConcurrent = false }: InstanceSource<E, Scope.Scope>,
  warmUp: (instance: Instance) => Effect.Effect<void, EW> = () => Effect.void,
): Effect.fn.Return<InstanceSet<E | EW>, E | EW, Scope.Scope> {
  // One scope for all instances, so that later finalizers that use the set run before any instance is released.
  const scope = yield* Scope.fork(yield* Scope.Scope)

  const buildOne = Effect.fn("InstanceSet.build")(function* (planned: InstancePlan.PlannedInstance) {
    const instanceScope = yield* Scope.fork(scope)
    return yield* Effect.gen(function* () {
      const permit = yield* permitOf(planned)
      return { planned, instance: yield* build(planned), permit, scope: instanceScope } satisfies Built
    }).pipe(
      Scope.provide(instanceScope),
      Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(instanceScope, exit) : Effect.void)),
    )
  })
  const close = (built: ReadonlyArray<Built>) =>
    Effect.forEach(built, ({ scope }) => Scope.close(scope, Exit.void), { discard: true })
  /** Builds instances into an array, which holds those that were built, also after a failure. */
  const buildAll = Effect.fnUntraced(function* (
    planned: ReadonlyArray<InstancePlan.PlannedInstance>,
    into: Array<Built>,
  ) {
    const concurrency = isConcurrent ? "unbounded" : 1
    const record = (each: InstancePlan.PlannedInstance) => Effect.map(buildOne(each), (built) => into.push(built))
    yield* Effect.forEach(planned, record, { concurrency, discard: true })
    yield* Effect.forEach(inOrder(planned, into), ({ instance }) => warmUp(instance), {
      concurrency: "unbounded",
      discard: true,
    })
    // A warm-up needs no resources.
    for (const { instance, permit } of into) instance.permit = permit
  })

  const first: Array<Built> = []
  yield* buildAll(plan.instances, first)
  let current = inOrder(plan.instances, first)
  let { groups } = plan
  return {
    get instances() {
      return current.map(({ instance }) => instance)
    },
    get groups() {
      return groups
    },
    prepare: Effect.fn("InstanceSet.prepare")(function* (plan, exchange) {
      let isSet = false
      const added: Array<Built> = []
      yield* Effect.addFinalizer(() => (isSet ? Effect.void : close(added)))
      yield* buildAll(
        plan.instances.filter((planned) => find(current, planned) === undefined),
        added,
      )
      const commit = Effect.suspend(() => {
        isSet = true
        const before = current
        current = inOrder(plan.instances, [...before, ...added])
        groups = plan.groups
        const leaving = before.filter((built) => !current.includes(built))
        return exchange(current.map(({ instance }) => instance)).pipe(
          Effect.andThen(close(leaving)),
          Effect.forkIn(scope, { startImmediately: true }),
          Effect.asVoid,
        )
      })
      return { commit }
    }),
  }
})

/** Adds an instance to the rate limiter, up to the end of the scope. Resources that are not there are a defect. */
const permitOf = Effect.fnUntraced(function* ({ details, rateLimiter }: InstancePlan.PlannedInstance) {
  const limiter = yield* CurrentRateLimiter
  if (limiter === undefined || rateLimiter === undefined) return undefined
  const register = Effect.suspend(() => {
    const registered = limiter.register(details.gpu ?? 0, rateLimiter)
    if (Result.isSuccess(registered)) return Effect.succeed(registered.success)
    return Effect.die(new RateLimitError({ message: registered.failure }))
  })
  return (yield* Effect.acquireRelease(register, ({ close }) => Effect.sync(close))).permit
})

const inOrder = (
  planned: ReadonlyArray<InstancePlan.PlannedInstance>,
  built: ReadonlyArray<Built>,
): ReadonlyArray<Built> => planned.flatMap((each) => find(built, each) ?? [])

const find = (built: ReadonlyArray<Built>, planned: InstancePlan.PlannedInstance): Built | undefined =>
  built.find((other) => InstancePlan.isAlike(other.planned, planned))
