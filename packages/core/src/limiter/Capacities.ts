/**
 * Computes how many units of each resource there are: as many as the limits say, or by default as many as any loaded
 * instance needs. Pure. The rules and messages are Triton's.
 */
import { Result } from "effect"
import type { Resource, ResourceLimit } from "./Resource.ts"

/** Units by pool. A global resource is one pool; any other resource has a pool for each device. */
export type Units = ReadonlyMap<string, number>

/** The resources that an execution holds on a device. The CPU counts as device 0. */
export interface Needs {
  readonly device: number
  readonly resources: ReadonlyArray<Resource>
}

const poolOf = ({ name, global = false }: Resource, device: number): string =>
  global ? `global:${name}` : `${device}:${name}`

/** Units that an execution holds. The last count of a resource that is named twice applies. */
export const held = ({ device, resources }: Needs): Units =>
  new Map(resources.map((resource) => [poolOf(resource, device), resource.count]))

/** Returns the units of each pool, or the reason why the last of these instances cannot be added. */
export const make = (
  instances: Iterable<Needs>,
  limits: ReadonlyArray<ResourceLimit> | undefined,
): Result.Result<Units, string> => {
  const units = new Map<string, number>()
  const globals = new Set<string>()
  const ofDevices = new Set<string>()
  for (const needs of instances) {
    for (const [pool, count] of held(needs)) units.set(pool, Math.max(count, units.get(pool) ?? 0))
    for (const { name, global = false } of needs.resources) (global ? globals : ofDevices).add(name)
    if (limits === undefined) continue
    for (const resource of needs.resources.toSorted(inOrder)) {
      const pool = poolOf(resource, needs.device)
      const needed = units.get(pool) ?? 0
      const available = limitOf(limits, resource, needs.device)
      if (available < needed) return Result.fail(shortage(resource.name, available, needed))
      units.set(pool, available)
    }
  }
  for (const name of globals) if (ofDevices.has(name)) return Result.fail(contradiction(name))
  return Result.succeed(units)
}

/** Triton looks at global resources first, and at names in their order. */
const inOrder = (one: Resource, other: Resource): number =>
  Number(other.global ?? false) - Number(one.global ?? false) || (one.name < other.name ? -1 : 1)

/** A resource that no limit names is unavailable. A global resource has the largest limit of all devices. */
const limitOf = (limits: ReadonlyArray<ResourceLimit>, { name, global = false }: Resource, device: number): number => {
  let most = 0
  for (const limit of limits) {
    const applies = global || limit.device === undefined || limit.device === device
    if (applies && limit.name === name && limit.count > most) most = limit.count
  }
  return most
}

const shortage = (name: string, available: number, needed: number): string =>
  `Resource count for "${name}" is limited to ${available} which will prevent scheduling of one or more model instances, the minimum required count is ${needed}`

const contradiction = (name: string): string =>
  `Resource "${name}" is present as both global and device-specific resource in the model configuration.`
