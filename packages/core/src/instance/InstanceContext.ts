/** The properties of an instance that its handler can read while it is built. Instance.ts executes batches. */
import { Context } from "effect"

/** Where an instance is to run, as its group says. */
export type DeviceKind = "CPU" | "GPU"

/** An instance as those that build it see it. */
export interface BuiltInstance {
  /** Name in the log: `<group>_<index>`; a group has the name `<model>_<number>`, the default one `<model>`. */
  readonly name: string
  readonly model: string
  readonly version: string
  /** Of its group among those of the model, from 0. */
  readonly group: number
  /** Among those of its group, from 0. */
  readonly index: number
  readonly kind: DeviceKind
  /** Of the GPU; undefined for the CPU. */
  readonly gpu: number | undefined
}

/**
 * Provided to the effect that builds a handler, and to the layers of its instance, so the model's layer does not
 * require it:
 *
 * ```ts
 * Model.batch(Embed, Effect.gen(function* () {
 *   const { gpu } = yield* InstanceContext
 *   const session = yield* Effect.acquireRelease(open({ device: gpu }), close)
 *   return ({ ids }) => session.run(ids)
 * }), { instances: [{ kind: "GPU", gpus: [0, 1] }] })
 * ```
 */
export class InstanceContext extends Context.Service<InstanceContext, BuiltInstance>()(
  "@nereid/core/InstanceContext",
) {}
