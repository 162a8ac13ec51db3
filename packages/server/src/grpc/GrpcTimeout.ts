/** The `grpc-timeout` header: at most eight digits and a unit. */

const milliseconds: { readonly [unit: string]: number } = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** In milliseconds; undefined where the header is not one. */
export const parse = (header: string): number | undefined => {
  const digits = header.slice(0, -1)
  const unit = milliseconds[header.slice(-1)]
  return unit === undefined || !/^[0-9]{1,8}$/.test(digits) ? undefined : Number(digits) * unit
}
