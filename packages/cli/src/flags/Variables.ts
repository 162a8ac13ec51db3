/**
 * Environment variables for flags: `NEREID_HTTP_PORT` sets `--http-port`. Repeatable flags have numbered variables:
 * `NEREID_LOAD_MODEL_0`. Flags define the variables, and parse their values if the command line lacks the flag
 * (FlagKind.ts).
 */
import { Context, Effect, Layer, Predicate } from "effect"
import { CliError, Param } from "effect/cli"
import * as Spelling from "./Spelling.ts"

export interface Variable {
  readonly name: string
  readonly value: string
  /** Number at the end of the name, if there is one. */
  readonly number: number | undefined
}

export interface Environment {
  /** Variables by flag, in order. */
  readonly given: ReadonlyMap<string, ReadonlyArray<Variable>>
  /** Variables without a matching flag, with the suggested flag: a line for each. */
  readonly unknown: ReadonlyArray<string>
}

export const Variables = Context.Reference<Environment>("@nereid/cli/Variables", {
  defaultValue: () => ({ given: new Map(), unknown: [] }),
})

const prefix = "NEREID_"

/** Variables of the libraries, which are no flags: the interpreter of models in Python. */
const others: ReadonlySet<string> = new Set(["NEREID_PYTHON"])

/** The name of a flag's variable. */
export const nameOf = (flag: string): string => prefix + flag.toUpperCase().replaceAll("-", "_")

/** Reads the variables of nested flags. */
export const read = (flags: unknown, environment: Readonly<Record<string, string | undefined>>): Environment => {
  const known = new Map(flagNames(flags).map((flag) => [nameOf(flag), flag]))
  const given = new Map<string, ReadonlyArray<Variable>>()
  const unknown: Array<string> = []
  const entries = Object.entries(environment).map(([name, value = ""]) => variable(name, value, known))
  for (const entry of entries.toSorted((one, other) => (one.number ?? -1) - (other.number ?? -1))) {
    const { name, value, flag } = entry
    // An empty variable counts as unset, because Compose files write unset variables that way.
    if (!name.startsWith(prefix) || value === "" || others.has(name) || isServiceLink(name, value)) continue
    if (flag !== undefined) given.set(flag, [...(given.get(flag) ?? []), entry])
    else unknown.push(unknownVariable(name, [...known.keys()]))
  }
  return { given, unknown }
}

const variable = (name: string, value: string, known: ReadonlyMap<string, string>) => {
  if (known.has(name)) return { name, value, number: undefined, flag: known.get(name) }
  const [, base = name, digits] = /^(.*)_(0|[1-9]\d{0,3})$/.exec(name) ?? []
  return { name, value, number: digits === undefined ? undefined : Number(digits), flag: known.get(base) }
}

const unknownVariable = (name: string, known: ReadonlyArray<string>): string => {
  const closest = Spelling.closest(name, known)
  const suggestion = closest === undefined ? "" : `; did you mean ${closest}?`
  return `${name} is not the environment variable of any flag${suggestion}`
}

/**
 * Recognizes the service links of Kubernetes and Docker. Kubernetes sets such variables in a pod for each service of
 * its namespace: a service named `nereid` or `nereid-http` sets `NEREID_PORT=tcp://10.0.0.1:8000` and others, which are
 * not meant for this server. No flag has a variable of these forms.
 */
const isServiceLink = (name: string, value: string): boolean =>
  /_SERVICE_(HOST|PORT(_.+)?)$/.test(name) ||
  /_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$/.test(name) ||
  (name.endsWith("_PORT") && /^(tcp|udp|sctp):\/\//.test(value))

interface NamedFlag {
  readonly name: string
  readonly aliases: ReadonlyArray<string>
}

/** Returns nested flags by their names. */
export const namedFlags = (flags: unknown): ReadonlyArray<NamedFlag> => {
  if (!Param.isParam(flags)) return Predicate.isObjectOrArray(flags) ? Object.values(flags).flatMap(namedFlags) : []
  if (Param.isSingle(flags)) return [flags]
  return Predicate.hasProperty(flags, "param") ? namedFlags(flags.param) : []
}

/** Returns the names of nested flags. */
export const flagNames = (flags: unknown): ReadonlyArray<string> => namedFlags(flags).map(({ name }) => name)

export const layer = (flags: unknown, environment: Readonly<Record<string, string | undefined>>): Layer.Layer<never> =>
  Layer.sync(Variables, () => read(flags, environment))

/** Fails if there are variables without a matching flag. */
export const refuseUnknown: Effect.Effect<void, CliError.UserError> = Effect.flatMap(Variables, ({ unknown }) =>
  unknown.length === 0 ? Effect.void : Effect.fail(new CliError.UserError({ cause: unknown.join("\n") })),
)
