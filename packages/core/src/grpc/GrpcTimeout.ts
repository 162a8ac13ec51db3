/** The header `grpc-timeout`: at most eight digits and a unit. */

const milliseconds: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

const largest = 99_999_999

/** Reads the header, in milliseconds. Returns undefined for an invalid one. */
export const parse = (header: string): number | undefined => {
  const digits = header.slice(0, -1)
  const unit = milliseconds[header.slice(-1)]
  return unit === undefined || !/^[0-9]{1,8}$/.test(digits) ? undefined : Number(digits) * unit
}

/** Writes a timeout in milliseconds, rounded up to at least 1 ms; above 27 hours to seconds. */
export const print = (timeout: number): string => {
  const millis = Math.max(1, Math.ceil(timeout))
  return millis <= largest ? `${millis}m` : `${Math.min(largest, Math.ceil(millis / 1000))}S`
}
