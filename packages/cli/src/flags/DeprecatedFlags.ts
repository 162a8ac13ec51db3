/** Warnings about flags that tritonserver has replaced, in its words. The flags still have their effect. */
import type { Command } from "effect/cli"
import type * as RepositoryFlags from "./RepositoryFlags.ts"
import type * as TraceFlags from "./TraceFlags.ts"

type Values = Command.Command.Config.Infer<{
  readonly repository: typeof RepositoryFlags.flags
  readonly trace: typeof TraceFlags.flags
}>

/** Settings that have a flag: the name of the value in `--trace-config`, and in the two texts. */
const traceFlags = [
  { flag: "file", name: "trace-file", setting: "triton,file=<filepath>", shown: "file" },
  { flag: "level", name: "trace-level", setting: "level=<OFF|TIMESTAMPS|TENSORS>", shown: "level" },
  { flag: "rate", name: "trace-rate", setting: "rate=<rate value>", shown: "rate value" },
  { flag: "count", name: "trace-count", setting: "count=<count value>", shown: "count" },
  {
    flag: "logFrequency",
    name: "trace-log-frequency",
    setting: "triton,log-frequency=<log frequency value>",
    shown: "log-frequency",
  },
] as const

/** Returns a warning for each deprecated flag that was given. */
export const warnings = ({ repository, trace }: Values): ReadonlyArray<string> => [
  ...(repository.strictConfig === undefined
    ? []
    : ["'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."]),
  ...traceFlags.flatMap(({ flag, name, setting, shown }) => {
    if (trace[flag].length === 0) return []
    const isOverridden = trace.settings.some((setting) => flag in setting)
    return [
      `'--${name}' has been deprecated and will be removed in future releases. ` +
        `Please use '--trace-config ${setting} instead.`,
      ...(isOverridden ? [`Overriding deprecated '--${name}' in favor of provided ${shown} in --trace-config!`] : []),
    ]
  }),
]
