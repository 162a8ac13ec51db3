/**
 * The parameter `sequence_max_idle`: the time for which the sequence of the request may be idle, from this request on,
 * in microseconds. sequence/SequenceProblem.ts compares it with the limit of the model.
 */
import { Duration } from "effect"
import type { Parameter, Parameters } from "./Request.ts"

export const name = "sequence_max_idle"

/** This many microseconds, and more, are no limit. */
const unlimited = Number.MAX_SAFE_INTEGER

/** In nanoseconds, infinite for no limit; undefined for a request without the parameter. Its value is valid. */
export const read = ({ [name]: given }: Parameters): number | undefined =>
  typeof given === "bigint" ? nanosOf(Number(given)) : undefined

/** Whether the parameter has a valid value. */
export const isValid = (given: Parameter): boolean => typeof given === "bigint" && given > 0n

export const nanosOf = (micros: number): number => (micros >= unlimited ? Infinity : micros * 1e3)

export const microsOf = (nanos: number): number => Math.min(Math.ceil(nanos / 1e3), unlimited)

/**
 * The value of the parameter.
 * @throws TypeError if the time is not longer than 0
 */
export const parameter = (maxIdle: Duration.Input): bigint => {
  const millis = Duration.toMillis(maxIdle)
  if (millis > 0) return BigInt(microsOf(millis * 1e6))
  throw new TypeError(`maxIdle of a session must be longer than 0, but ${millis} ms was given.`)
}
