/** Flags of the rate limiter, whose texts are Triton's, and the layer that they are. */
import { RateLimit } from "@nereid/core"
import { Effect, Layer } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

const modes = ["off", "execution_count"] as const

export const flags = {
  mode: FlagKind.collectedFrom(
    "rate-limit",
    {
      takes: modes.join("|"),
      description:
        "Limit executions by the resources of instance groups; those with the fewest executions, times priority, go first",
      fallback: "off",
    },
    (given) => {
      const mode = modes.find((mode) => mode === given.text.toLowerCase())
      if (mode !== undefined) return Effect.succeed(mode)
      const expected = `"${given.text}" was given, expected ${modes.join(" or ")}`
      return invalid(`invalid argument for ${FlagKind.sourceOf("rate-limit", given)}: ${expected}`)
    },
  ),
  resources: FlagKind.collectedFrom(
    "rate-limit-resource",
    {
      takes: "name:count[:device]",
      description:
        "Units of a resource on each device, or on one; without this flag, as many as one instance needs; repeatable",
    },
    (given) => {
      const resource = parseResource(given.text)
      if (resource !== undefined) return Effect.succeed(resource)
      const source = FlagKind.sourceOf("rate-limit-resource", given)
      const format = "'<resource_name>:<count>:<device>' or '<resource_name>:<count>'"
      return invalid(`${source} option format is ${format}. Got ${given.text}`)
    },
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

const invalid = (message: string) => Effect.fail(new CliError.ValidationError({ message }))

/** Numbers are those of a 32-bit integer, as Triton reads them. */
const parseResource = (text: string): RateLimit.ResourceLimit | undefined => {
  const [, name, count = "", device] = /^([^:]+):(\d+)(?::(\d+))?$/.exec(text) ?? []
  if (name === undefined || Number(count) > maxInteger || Number(device ?? 0) > maxInteger) return undefined
  return { name, count: Number(count), ...(device === undefined ? {} : { device: Number(device) }) }
}

const maxInteger = 2 ** 31 - 1

/** Returns a layer with the rate limiter; an empty one while it is off. */
export const layer = ({ mode, resources }: Values): Layer.Layer<never> => {
  if (mode.at(-1) !== "execution_count") return Layer.empty
  return RateLimit.layer(resources.length === 0 ? {} : { resources: least(resources) })
}

/** As in Triton, the least of several counts of one resource and device applies. */
const least = (resources: ReadonlyArray<RateLimit.ResourceLimit>): ReadonlyArray<RateLimit.ResourceLimit> => {
  const byKey = new Map<string, RateLimit.ResourceLimit>()
  for (const resource of resources) {
    const key = `${resource.name}:${resource.device ?? ""}`
    const other = byKey.get(key)
    if (other === undefined || resource.count < other.count) byKey.set(key, resource)
  }
  return [...byKey.values()]
}
