/**
 * The instances of a model, as its options declare them: individually, and in groups as in the protocol's
 * configuration. Pure: InstanceSet.ts builds the instances.
 */
import { Equal, Layer } from "effect"
import { requireInteger } from "../model/OptionChecks.ts"
import type { GroupLimits } from "../limiter/Resource.ts"
import type { InstanceGroup } from "./Instance.ts"
import type { BuiltInstance, DeviceKind, InstanceContext } from "./InstanceContext.ts"

/** Some instances that are alike. */
export interface GroupOptions<L = AnyLayer> {
  /** Number of instances, for each GPU if there are several. Default 1. */
  readonly count?: number
  /** Device kind, which the handler reads from InstanceContext and interprets. Default "CPU". */
  readonly kind?: DeviceKind
  /** Ids of the devices, for the kind "GPU". Default `[0]`. */
  readonly gpus?: ReadonlyArray<number>
  /** Services for each instance, built and released with it. */
  readonly layer?: L
  /** Name of the group, whose instances are `<name>_0`, `<name>_1` and so on. Default `<model>_<group>`. */
  readonly name?: string
  /** Resources that each execution of an instance holds, and its priority, for the rate limiter (RateLimit). */
  readonly rateLimiter?: GroupLimits | undefined
}

/** A number, or a list of groups; a layer is a group of one instance. */
export type InstancesOption = number | ReadonlyArray<GroupOptions | AnyLayer>

type AnyLayer = Layer.Layer<never, unknown, unknown>

/** The layers of instances; one without has the layer of nothing. */
type LayerOf<Options> = "instances" extends keyof Options
  ? Options["instances"] extends ReadonlyArray<infer Element>
    ? Element extends Layer.Any
      ? Element
      : Element extends { readonly layer: infer L extends Layer.Any }
        ? L
        : Layer.Layer<never>
    : Layer.Layer<never>
  : Layer.Layer<never>

/** Services that the layers of instances provide. */
export type Provided<Options> = [LayerOf<Options>] extends [Layer.Layer<infer Provides, infer _E, infer _R>]
  ? Provides
  : never

/** Errors of the layers of instances. */
export type Failure<Options> = Layer.Error<LayerOf<Options>>

/** Services that the layers of instances require, except for InstanceContext. */
export type Needs<Options> = Exclude<Layer.Services<LayerOf<Options>>, InstanceContext>

/** One instance that is to be built. */
export interface PlannedInstance {
  readonly details: BuiltInstance
  readonly layer: AnyLayer | undefined
  readonly rateLimiter: GroupLimits | undefined
}

export interface InstancePlan {
  readonly instances: ReadonlyArray<PlannedInstance>
  readonly groups: ReadonlyArray<InstanceGroup>
}

/** Whether the second one would be built as the first one was. */
export const isAlike = (one: PlannedInstance, other: PlannedInstance): boolean =>
  one.layer === other.layer &&
  one.details.name === other.details.name &&
  // Groups may have equal names.
  one.details.group === other.details.group &&
  one.details.index === other.details.index &&
  one.details.kind === other.details.kind &&
  one.details.gpu === other.details.gpu &&
  Equal.equals(one.rateLimiter, other.rateLimiter)

/**
 * Plans the instances of a model. By default there is one, in a group with the name of the model.
 * @throws TypeError if there is no instance, or if a number is out of range
 */
export const make = (model: string, version: string, option: InstancesOption = [{ name: model }]): InstancePlan => {
  if (typeof option === "number") requireInteger(model, "instances", option, 1)
  const given = typeof option === "number" ? [{ count: option }] : option
  if (given.length === 0) throw new TypeError(`Model "${model}": instances must name at least one, but none was given.`)
  const planned = given.map((each, group) => planGroup(model, version, group, isLayer(each) ? { layer: each } : each))
  return { instances: planned.flatMap(({ instances }) => instances), groups: planned.map(({ group }) => group) }
}

const isLayer = (each: GroupOptions | AnyLayer): each is AnyLayer => Layer.isLayer(each)

const planGroup = (model: string, version: string, group: number, options: GroupOptions) => {
  const { count = 1, kind = "CPU", layer, rateLimiter, name = `${model}_${group}` } = options
  const { gpus = kind === "GPU" ? [0] : [] } = options
  requireInteger(model, `instances[${group}].count`, count, 1)
  requireInteger(model, `instances[${group}].rateLimiter.priority`, rateLimiter?.priority ?? 1, 0)
  for (const { name, count } of rateLimiter?.resources ?? []) {
    requireInteger(model, `instances[${group}].rateLimiter, count of resource "${name}",`, count, 0)
  }
  for (const gpu of gpus) requireInteger(model, `instances[${group}].gpus`, gpu, 0)
  if (gpus.length > 0 !== (kind === "GPU")) {
    const rule = kind === "GPU" ? "must name at least one device" : 'require kind "GPU"'
    throw new TypeError(`Model "${model}": instances[${group}].gpus ${rule}, but [${gpus}] was given.`)
  }
  const devices = kind === "GPU" ? gpus : [undefined]
  const instances = devices
    .flatMap((gpu) => Array.from({ length: count }, () => gpu))
    .map((gpu, index): PlannedInstance => {
      return { details: { name: `${name}_${index}`, model, version, group, index, kind, gpu }, layer, rateLimiter }
    })
  return { instances, group: { name, kind, count, gpus, ...(rateLimiter && { rateLimiter }) } }
}
