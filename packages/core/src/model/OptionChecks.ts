/** Checks of numbers and times among the options of a model. */
import { Duration } from "effect"

/** @throws TypeError if the option is not an integer of at least `minimum` */
export const requireInteger = (model: string, option: string, value: number, minimum: number) => {
  if (Number.isSafeInteger(value) && value >= minimum) return
  throw new TypeError(`Model "${model}": ${option} must be an integer of at least ${minimum}, but ${value} was given.`)
}

/** @throws TypeError if the option is not longer than 0 */
export const positive = (model: string, option: string, value: Duration.Input): Duration.Duration => {
  const duration = Duration.fromInputUnsafe(value)
  if (Duration.isPositive(duration)) return duration
  throw new TypeError(`Model "${model}": ${option} must be longer than 0, but ${Duration.format(duration)} was given.`)
}
