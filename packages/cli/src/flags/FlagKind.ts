/**
 * What a flag takes, in the spelling of tritonserver: always a value, behind `=` or as the next argument, and where a flag
 * comes more than once the last counts, except for those that collect. A bad value is refused with the flag, the value and
 * what is allowed.
 */
import { Effect, identity, Result } from "effect"
import { CliError, Flag } from "effect/cli"

/** What a text stands for, or what was expected instead. */
export type Parse<A> = (text: string) => Result.Result<A, string>

interface Description {
  /** The kind of its value, in the help. */
  readonly takes: string
  readonly description: string
  /** What may be said of a bad value. Default all of it. */
  readonly shown?: (value: string) => string
  /** Its other names, those of a letter for one dash. */
  readonly aliases?: ReadonlyArray<string>
}

/** Every value of a flag that may come any number of times, in their order. */
export const collected = <A>(
  name: string,
  { takes, description, shown = identity, aliases = [] }: Description,
  parse: Parse<A>,
): Flag.Flag<ReadonlyArray<A>> =>
  aliases
    .reduce((flag, alias) => Flag.withAlias(flag, alias), Flag.String(name))
    .pipe(
      Flag.withMetavar(takes),
      Flag.withDescription(description),
      Flag.mapEffect((value) =>
        Effect.mapError(
          Effect.fromResult(parse(value)),
          (expected) => new CliError.InvalidValue({ option: name, value: shown(value), expected, kind: "flag" }),
        ),
      ),
      Flag.atLeast(0),
    )

/** The last value, if there is one. */
export const optional = <A>(name: string, description: Description, parse: Parse<A>): Flag.Flag<A | undefined> =>
  collected(name, description, parse).pipe(Flag.map((values) => values.at(-1)))

/** The last value, or the default, which the description then tells. */
export const withDefault = <A>(name: string, description: Description, fallback: A, parse: Parse<A>): Flag.Flag<A> =>
  collected(name, { ...description, description: `${description.description} (${String(fallback)})` }, parse).pipe(
    Flag.map((values) => values.at(-1) ?? fallback),
  )

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

export const port = (name: string, what: string, fallback: number): Flag.Flag<number> =>
  integer(name, `Port of ${what}, 0 for a free one`, fallback, { minimum: 0, maximum: 65_535 })

/** One of these words, whatever their case. */
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

/** Any text, or none. An empty one is as good as none. */
export const text = (name: string, takes: string, description: string): Flag.Flag<string | undefined> =>
  optional(name, { takes, description }, Result.succeed).pipe(Flag.map((text) => (text === "" ? undefined : text)))

/** What stands between commas; of all times that it comes. */
export const list = (name: string, takes: string, description: string): Flag.Flag<ReadonlyArray<string>> =>
  collected(name, { takes, description }, (text) => {
    const items = text.split(",").map((item) => item.trim())
    return items.includes("") ? Result.fail(takes) : Result.succeed(items)
  }).pipe(Flag.map((lists) => lists.flat()))
