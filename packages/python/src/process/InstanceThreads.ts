/**
 * Instances that are threads of one process. The scheduler sees them as separate instances; their process is started,
 * restarted and stopped for all at once.
 */
import { Deferred, Effect, type Scope } from "effect"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import type { SupervisedInstance } from "@nereid/core/internal/instance/Supervisor"

/**
 * Builds each instance by its details. `process` is in the scope of the first one. The others wait for it, and do not
 * complete if it fails: they are built and released together.
 */
export const make = <E>(
  threads: ReadonlyArray<BuiltInstance>,
  process: Effect.Effect<SupervisedInstance, E, Scope.Scope>,
): ((details: BuiltInstance) => Effect.Effect<Instance, E, Scope.Scope>) => {
  const started = Deferred.makeUnsafe<ReadonlyArray<Instance>>()
  const start = Effect.tap(
    Effect.map(process, (supervised) => split(threads, supervised)),
    (instances) => Deferred.succeed(started, instances),
  )
  return (details) => {
    // Groups may have equal names.
    const index = threads.indexOf(details)
    return Effect.flatMap(index === 0 ? start : Deferred.await(started), (instances) => {
      const instance = instances[index]
      return instance === undefined
        ? Effect.die(`Instance ${details.name} has no thread. This is a bug.`)
        : Effect.succeed(instance)
    })
  }
}

/** One instance for each thread. The status of all is that of the process. */
const split = (threads: ReadonlyArray<BuiltInstance>, process: SupervisedInstance): ReadonlyArray<Instance> => {
  const instances = threads.map(({ name }, index): Instance => ({
    ...process,
    name,
    onStatusChange: () => {},
    execute: (batch, settle) => process.execute(batch, settle, index),
  }))
  process.onStatusChange = () => {
    for (const instance of instances) instance.onStatusChange()
  }
  return instances
}
