/** Which sessions a model has: as its options say it, each with its execution providers, and in groups as the protocol shows them. */
import type { InstanceGroup } from "@nereid/core/Instance"
import * as Provider from "./Provider.ts"

/** The most wanted first. */
export type Providers = readonly [Provider.Provider, ...Array<Provider.Provider>]

/** Some sessions that are alike. */
export interface SessionGroup {
  /** How many. Default 1. */
  readonly count?: number
  /** Default those of the model. */
  readonly providers?: Providers
}

/** A number of sessions, or a list of groups. */
export type SessionsOption = number | ReadonlyArray<SessionGroup>

export interface PlannedSession {
  /** `<model>_<group>_<index>`. */
  readonly name: string
  readonly providers: Providers
}

export interface SessionPlan {
  readonly sessions: ReadonlyArray<PlannedSession>
  readonly groups: ReadonlyArray<InstanceGroup>
}

export const make = (model: string, option: SessionsOption = 1, providers: Providers = ["cpu"]): SessionPlan => {
  const groups = typeof option === "number" ? [{ count: option }] : option
  const planned = groups.map((group, index) => ({
    name: `${model}_${index}`,
    count: group.count ?? 1,
    providers: group.providers ?? providers,
  }))
  return {
    sessions: planned.flatMap(({ name, count, providers }) =>
      Array.from({ length: count }, (_, index) => ({ name: `${name}_${index}`, providers })),
    ),
    groups: planned.map(({ name, count, providers }) => ({ name, count, ...device(providers) })),
  }
}

/** Of the one that is wanted most. */
const device = ([provider]: ReadonlyArray<Provider.Provider>): Pick<InstanceGroup, "kind" | "gpus"> => {
  if (provider === undefined || Provider.name(provider) === "cpu") return { kind: "CPU", gpus: [] }
  return { kind: "GPU", gpus: [typeof provider === "string" ? 0 : (provider.deviceId ?? 0)] }
}

/** What is wrong with the option; undefined for nothing. */
export const problem = (option: SessionsOption = 1): string | undefined => {
  if (typeof option === "number") return countProblem("instances", option)
  if (option.length === 0) return "instances must name at least one group, but none was given"
  for (const [index, { count = 1, providers }] of option.entries()) {
    const wrong =
      countProblem(`instances[${index}].count`, count) ?? providersProblem(`instances[${index}].providers`, providers)
    if (wrong !== undefined) return wrong
  }
  return undefined
}

export const countProblem = (option: string, value: number): string | undefined =>
  Number.isSafeInteger(value) && value >= 1
    ? undefined
    : `${option} must be an integer of at least 1, but ${value} was given`

/** The type demands one, but JavaScript has no types. */
export const providersProblem = (
  option: string,
  providers: ReadonlyArray<Provider.Provider> | undefined,
): string | undefined =>
  providers?.length === 0 ? `${option} must name at least one execution provider, but none was given` : undefined
