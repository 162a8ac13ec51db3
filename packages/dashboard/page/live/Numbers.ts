/** Numbers as people read them: three digits, and a unit. */

const digits = (value: number): string => {
  if (value === 0) return "0"
  const size = Math.abs(value)
  if (size >= 100) return value.toLocaleString("en", { maximumFractionDigits: 0 })
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1 ? 3 : 2 })
}

export const number = (value: number): string => digits(value)

/** A duration, from milliseconds. */
export const duration = (millis: number | undefined): string => {
  if (millis === undefined) return "–"
  if (millis < 1) return `${digits(millis * 1000)} µs`
  return millis < 10_000 ? `${digits(millis)} ms` : `${digits(millis / 1000)} s`
}

/** A size, from bytes. */
export const size = (bytes: number): string => {
  if (bytes < 1e6) return `${digits(bytes / 1e3)} kB`
  return bytes < 1e9 ? `${digits(bytes / 1e6)} MB` : `${digits(bytes / 1e9)} GB`
}

export const percent = (share: number): string => `${digits(share * 100)} %`

/** Time of day, from milliseconds since the epoch. */
export const clock = (time: number): string => new Date(time).toLocaleTimeString("en-GB")
