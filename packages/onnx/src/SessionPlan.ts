/** Which sessions a model has, as its options say it: instances, each with its execution providers. */
import type { InstanceGroup } from "@nereid/core/internal/instance/Instance"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import type { GroupLimits } from "@nereid/core/internal/limiter/Resource"
import * as Provider from "./Provider.ts"

/** Execution providers in order of preference. */
export type Providers = readonly [Provider.Provider, ...Array<Provider.Provider>]

/** Group of identical sessions. */
export interface SessionGroup {
  /** Number of sessions. Default 1. */
  readonly count?: number
  /** Execution providers of the group. Default: those of the model. */
  readonly providers?: Providers
  /** Resources that each execution of a session holds, and its priority, for the rate limiter (RateLimit). */
  readonly rateLimiter?: GroupLimits | undefined
}

/** A number of sessions, or a list of groups. */
export type SessionsOption = number | ReadonlyArray<SessionGroup>

export interface SessionPlan {
  readonly plan: InstancePlan.InstancePlan
  readonly providers: (instance: BuiltInstance) => Providers
}

/** @throws TypeError if there is no session, or a number is out of range */
export const make = (
  { name, version }: { readonly name: string; readonly version: string },
  option: SessionsOption | undefined,
  providers: Providers = ["cpu"],
): SessionPlan => {
  const groups = typeof option === "number" ? [{ count: option }] : (option ?? [{}])
  const planned = groups.map(({ count = 1, providers: groupProviders = providers, rateLimiter }: SessionGroup) => ({
    count,
    rateLimiter,
    ...device(groupProviders),
    // The default group has the name of the model.
    ...(option === undefined ? { name } : {}),
  }))
  return {
    plan: InstancePlan.make(name, version, planned),
    providers: ({ group }) => groups[group]?.providers ?? providers,
  }
}

/** Returns the device of the preferred provider. */
const device = ([provider]: ReadonlyArray<Provider.Provider>): Pick<InstanceGroup, "kind" | "gpus"> => {
  if (provider === undefined || Provider.name(provider) === "cpu") return { kind: "CPU", gpus: [] }
  return { kind: "GPU", gpus: [typeof provider === "string" ? 0 : (provider.deviceId ?? 0)] }
}

/** Returns an error message if the option is invalid, otherwise undefined. */
export const problem = (option: SessionsOption = 1): string | undefined => {
  if (typeof option === "number") return countProblem("instances", option)
  if (option.length === 0) return "instances must name at least one group, but none was given"
  for (const [index, { count = 1, providers, rateLimiter }] of option.entries()) {
    const wrong =
      countProblem(`instances[${index}].count`, count) ??
      limitsProblem(`instances[${index}].rateLimiter`, rateLimiter) ??
      providersProblem(`instances[${index}].providers`, providers)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

export const countProblem = (option: string, value: number, minimum = 1): string | undefined =>
  Number.isSafeInteger(value) && value >= minimum
    ? undefined
    : `${option} must be an integer of at least ${minimum}, but ${value} was given`

const limitsProblem = (option: string, { resources = [], priority = 1 }: GroupLimits = {}): string | undefined => {
  const counts = resources.map(({ name, count }) => countProblem(`${option}, count of resource "${name}",`, count, 0))
  return countProblem(`${option}.priority`, priority, 0) ?? counts.find((problem) => problem !== undefined)
}

/** Checks the provider list at run time too, for callers in JavaScript. */
export const providersProblem = (
  option: string,
  providers: ReadonlyArray<Provider.Provider> | undefined,
): string | undefined =>
  providers?.length === 0 ? `${option} must name at least one execution provider, but none was given` : undefined
