/** Warnings about flags that tritonserver has replaced, in its words. The flags still have their effect. */
import type { Command } from "effect/cli"
import type * as RepositoryFlags from "./RepositoryFlags.ts"
import type * as TraceFlags from "./TraceFlags.ts"

type Values = Command.Command.Config.Infer<{
  readonly repository: typeof RepositoryFlags.flags
  readonly trace: typeof TraceFlags.flags
}>

/** Returns a warning for each deprecated flag that was given. */
export const warnings = ({ repository, trace }: Values): ReadonlyArray<string> => [
  ...(repository.strictConfig === undefined
    ? []
    : ["'--strict-model-config' has been deprecated! Please use '--disable-auto-complete-config' instead."]),
  ...traceWarning(trace.file, "trace-file", "triton,file=<filepath>"),
  ...traceWarning(trace.level, "trace-level", "level=<OFF|TIMESTAMPS|TENSORS>"),
  ...traceWarning(trace.rate, "trace-rate", "rate=<rate value>"),
  ...traceWarning(trace.count, "trace-count", "count=<count value>"),
  ...traceWarning(trace.logFrequency, "trace-log-frequency", "triton,log-frequency=<log frequency value>"),
]

const traceWarning = (given: ReadonlyArray<unknown>, name: string, setting: string): ReadonlyArray<string> =>
  given.length === 0
    ? []
    : [
        `'--${name}' has been deprecated and will be removed in future releases. ` +
          `Please use '--trace-config ${setting} instead.`,
      ]
