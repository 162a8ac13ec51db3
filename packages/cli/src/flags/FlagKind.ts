/**
 * Flags in the syntax of tritonserver. A flag always has a value, after `=` or as the next argument. The last of
 * repeated flags wins, except for flags that collect values. A missing flag takes its value from its environment
 * variable. An invalid value is an error that names the flag or variable, the value, and the allowed values.
 */
import { Effect, identity, Result } from "effect"
import { CliError, Flag } from "effect/cli"
import { nameOf, type Variable, Variables } from "./Variables.ts"

/** Parses a text. Fails with a description of the expected values. */
export type Parse<A> = (text: string) => Result.Result<A, string>

interface Description {
  /** The kind of its value, in the help. */
  readonly takes: string
  readonly description: string
  /** Default value, in the help, if `withDefault` does not know it. */
  readonly fallback?: string
  /** Returns the part of an invalid value that errors may show. Default: the whole value. */
  readonly display?: (value: string) => string
  /** Aliases; one of a single letter has one dash. */
  readonly aliases?: ReadonlyArray<string>
}

/** One value of a flag. */
export interface Given {
  readonly text: string
  /** Environment variable that holds the value; undefined for the command line. */
  readonly variable?: Variable
}

/** Values of a flag from the command line, or otherwise from environment variables. */
const given = (flag: Flag.Flag<string>, name: string): Flag.Flag<ReadonlyArray<Given>> =>
  flag.pipe(
    Flag.atLeast(0),
    Flag.mapEffect((texts) =>
      Effect.map(Variables, (environment): ReadonlyArray<Given> => {
        if (texts.length > 0) return texts.map((text) => ({ text }))
        return (environment.given.get(name) ?? []).map((variable) => ({ text: variable.value, variable }))
      }),
    ),
  )

/** Returns the name of the flag or variable, for messages. */
export const sourceOf = (name: string, { variable }: Given): string => variable?.name ?? `--${name}`

const described = (name: string, { takes, description, fallback, aliases = [] }: Description): Flag.Flag<string> =>
  aliases
    .reduce((flag, alias) => Flag.withAlias(flag, alias), Flag.String(name))
    .pipe(
      Flag.withMetavar(takes),
      Flag.withDescription(fallback === undefined ? description : `${description} (default ${fallback})`),
    )

/** All values of a repeatable flag, in order. `parse` knows the flag or the variable of each value. */
export const collectedFrom = <A>(
  name: string,
  description: Description,
  parse: (given: Given) => Effect.Effect<A, CliError.CliError>,
): Flag.Flag<ReadonlyArray<A>> =>
  given(described(name, description), name).pipe(Flag.mapEffect((values) => Effect.forEach(values, parse)))

/** All values of a repeatable flag, in order. */
export const collected = <A>(name: string, description: Description, parse: Parse<A>): Flag.Flag<ReadonlyArray<A>> =>
  collectedFrom(name, description, parsed(name, description, parse))

const parsed =
  <A>(name: string, { display = identity }: Description, parse: Parse<A>) =>
  ({ text, variable }: Given): Effect.Effect<A, CliError.CliError> =>
    Effect.mapError(Effect.fromResult(parse(text)), (expected) => {
      const value = display(text)
      if (variable === undefined) return new CliError.InvalidValue({ option: name, value, expected, kind: "flag" })
      const message = `Invalid value for environment variable ${variable.name}: "${value}". Expected: ${expected}`
      return new CliError.ValidationError({ message })
    })

/** The last value, if there is one. */
export const optional = <A>(name: string, description: Description, parse: Parse<A>): Flag.Flag<A | undefined> => {
  const parseOne = parsed(name, description, parse)
  return collectedFrom(name, description, (given) => {
    if (given.variable?.number === undefined) return parseOne(given)
    const message = `${given.variable.name} is numbered, but --${name} takes one value: set ${nameOf(name)}`
    return Effect.fail(new CliError.ValidationError({ message }))
  }).pipe(Flag.map((values) => values.at(-1)))
}

/** Flag whose last value counts, with a default that its help shows. */
export const withDefault = <A>(name: string, description: Description, fallback: A, parse: Parse<A>): Flag.Flag<A> =>
  optional(name, { ...description, fallback: String(fallback) }, parse).pipe(Flag.map((value) => value ?? fallback))

/** Flag without a value; its environment variable takes a boolean. */
export const present = (name: string, description: string): Flag.Flag<boolean> => {
  const flag = Flag.Boolean(name).pipe(Flag.withoutNegation, Flag.withDescription(description), Flag.map(String))
  const parse = parsed(name, { takes: "boolean", description }, parseBoolean)
  return given(flag, name).pipe(
    Flag.mapEffect((values) => Effect.forEach(values, parse)),
    Flag.map((values) => values.includes(true)),
  )
}

export const parseBoolean: Parse<boolean> = (text) => {
  const lower = text.toLowerCase()
  if (["true", "1", "on"].includes(lower)) return Result.succeed(true)
  return ["false", "0", "off"].includes(lower) ? Result.succeed(false) : Result.fail("true, false, 1 or 0")
}

export const boolean = (name: string, description: string, fallback: boolean): Flag.Flag<boolean> =>
  withDefault(name, { takes: "boolean", description }, fallback, parseBoolean)

/** Inclusive bounds. */
export interface Range {
  readonly minimum: number
  readonly maximum?: number
}

export const parseInteger =
  ({ minimum, maximum }: Range): Parse<number> =>
  (text) => {
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN
    if (Number.isSafeInteger(value) && value >= minimum && value <= (maximum ?? value)) return Result.succeed(value)
    return Result.fail(
      maximum === undefined ? `an integer of at least ${minimum}` : `an integer from ${minimum} to ${maximum}`,
    )
  }

export const integer = (name: string, description: string, fallback: number, range: Range): Flag.Flag<number> =>
  withDefault(name, { takes: "integer", description }, fallback, parseInteger(range))

export const optionalInteger = (name: string, description: string, range: Range): Flag.Flag<number | undefined> =>
  optional(name, { takes: "integer", description }, parseInteger(range))

export const port = (name: string, protocols: string, fallback: number): Flag.Flag<number> =>
  integer(name, `Port for ${protocols}; 0 selects a free port`, fallback, { minimum: 0, maximum: 65_535 })

/** Flag that takes one of these words, regardless of case. */
export const choice = <const W extends string>(
  name: string,
  description: string,
  fallback: W,
  words: ReadonlyArray<W>,
): Flag.Flag<W> =>
  withDefault(name, { takes: words.join("|"), description }, fallback, (text) => {
    const word = words.find((word) => word.toLowerCase() === text.toLowerCase())
    return word === undefined ? Result.fail(words.join(", ")) : Result.succeed(word)
  })

/** Flag for any text. An empty text counts as unset. `fallback` is the default that the help shows. */
export const text = (
  name: string,
  takes: string,
  description: string,
  fallback?: string,
): Flag.Flag<string | undefined> =>
  optional(name, { takes, description, ...(fallback === undefined ? {} : { fallback }) }, Result.succeed).pipe(
    Flag.map((text) => (text === "" ? undefined : text)),
  )

/** Comma-separated list; repeated flags add to it. */
export const list = (
  name: string,
  takes: string,
  description: string,
  fallback?: string,
): Flag.Flag<ReadonlyArray<string>> =>
  collected(name, { takes, description, ...(fallback === undefined ? {} : { fallback }) }, (text) => {
    const items = text.split(",").map((item) => item.trim())
    return items.includes("") ? Result.fail(takes) : Result.succeed(items)
  }).pipe(Flag.map((lists) => lists.flat()))
