/**
 * Compares a document of the server with the expected part of it. Other fields may be anything; lists are whole.
 * Numbers may stand as text: protobuf's JSON has 64-bit integers so.
 */
export const missing = (expected: unknown, shown: unknown, path = ""): ReadonlyArray<string> => {
  if (Array.isArray(expected)) {
    if (!Array.isArray(shown) || shown.length !== expected.length) return [difference(expected, shown, path)]
    return expected.flatMap((element, index) => missing(element, shown[index], `${path}[${index}]`))
  }
  if (isRecord(expected)) {
    if (!isRecord(shown)) return [difference(expected, shown, path)]
    return Object.entries(expected).flatMap(([name, value]) => missing(value, shown[name], `${path}.${name}`))
  }
  return String(expected) === String(shown) ? [] : [difference(expected, shown, path)]
}

const difference = (expected: unknown, shown: unknown, path: string): string =>
  `${path}: ${JSON.stringify(shown)}, expected ${JSON.stringify(expected)}`

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
