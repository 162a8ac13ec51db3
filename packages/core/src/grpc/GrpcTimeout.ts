/** The header `grpc-timeout`: at most eight digits and a unit. */

const milliseconds: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

const largest = 99_999_999
const maxDigits = 8
const zero = 48

/** Reads the header, in milliseconds. Returns undefined for an invalid one. */
export const parse = (header: string): number | undefined => {
  const last = header.length - 1
  const unit = milliseconds[header.charAt(last)]
  if (unit === undefined || last < 1 || last > maxDigits) return undefined
  let number = 0
  // Each call with a deadline has one: a loop is faster than an expression and a conversion.
  for (let index = 0; index < last; index++) {
    const digit = header.charCodeAt(index) - zero
    if (digit < 0 || digit > 9) return undefined
    number = number * 10 + digit
  }
  return number * unit
}

/** Writes a timeout in milliseconds, rounded up to at least 1 ms; above 27 hours to seconds. */
export const print = (timeout: number): string => {
  const millis = Math.max(1, Math.ceil(timeout))
  return millis <= largest ? `${millis}m` : `${Math.min(largest, Math.ceil(millis / 1000))}S`
}
