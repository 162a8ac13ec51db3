/** Reads the header `Server-Timing`: https://www.w3.org/TR/server-timing/ */

export interface ServerTiming {
  /** Durations in milliseconds, by name, in the order of the header. */
  readonly phases: ReadonlyArray<readonly [name: string, milliseconds: number]>
  /** Rows of the batch that the request was part of. */
  readonly batch: number | undefined
}

const token = /[\w!#$%&'*+.^`|~-]+/y

/** Undefined if the header says nothing. */
export const parse = (header: string | null): ServerTiming | undefined => {
  const metrics = split(header ?? "", ",").map((metric) => {
    const [name = "", ...parameters] = split(metric, ";").map((part) => part.trim())
    const values = parameters.map((parameter) => {
      const [key = "", ...value] = parameter.split("=")
      return [key.trim().toLowerCase(), unquoted(value.join("=").trim())] as const
    })
    return { name, values: new Map(values) }
  })
  const phases = metrics.flatMap(({ name, values }): ServerTiming["phases"] => {
    token.lastIndex = 0
    const duration = Number(values.get("dur"))
    return token.test(name) && values.has("dur") && Number.isFinite(duration) ? [[name, duration]] : []
  })
  const batch = Number(metrics.find(({ name }) => name === "batch")?.values.get("desc"))
  const rows = Number.isInteger(batch) && batch > 0 ? batch : undefined
  return phases.length === 0 && rows === undefined ? undefined : { phases, batch: rows }
}

/** Splits outside of quoted strings. */
const split = (text: string, separator: string): ReadonlyArray<string> =>
  text.match(separator === "," ? /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g : /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g) ?? []

const unquoted = (text: string): string =>
  text.startsWith('"') ? text.replace(/^"|"$/g, "").replaceAll(/\\(.)/g, "$1") : text
