/** Fuzzing settings from the environment: the seed, the first request, and the number of requests. */
const number = (name: string, otherwise: number): number => {
  const text = process.env[name]
  if (text === undefined) return otherwise
  if (!/^[0-9]+$/.test(text)) throw new TypeError(`${name} must be a number, got: ${text}`)
  return Number(text)
}

export const seed = number("NEREID_FUZZ_SEED", 1)

/** The number of the first request; one alone can be had again by it. */
export const first = number("NEREID_FUZZ_FIRST", 0)

export const count = number("NEREID_FUZZ_COUNT", 10_000)
