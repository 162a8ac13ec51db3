/** Text after the table of a benchmark: remarks on the figures, and errors. */
import * as Level from "@nereid/bench/internal/load/Level"
import type { Summary } from "@nereid/bench/internal/report/Summary"

/** Remarks that several levels share are said once. */
export const remarks = (summaries: ReadonlyArray<Summary>): ReadonlyArray<string> => {
  const found = summaries.flatMap(({ level, remarks }) => remarks.map((remark) => `${Level.print(level)}: ${remark}`))
  return found.length === 0 ? [] : ["", ...found]
}

/** Undefined where nothing went wrong. */
export const failure = (summaries: ReadonlyArray<Summary>): string | undefined => {
  const count = summaries.reduce((sum, { errors }) => sum + errors, 0)
  if (count === 0) return summaries.some(({ requests }) => requests > 0) ? undefined : "no request received a response"
  const messages = new Map<string, number>()
  for (const summary of summaries) {
    for (const [message, times] of summary.messages) messages.set(message, (messages.get(message) ?? 0) + times)
  }
  const worst = [...messages].toSorted(([, one], [, other]) => other - one).slice(0, 5)
  return [`${count} requests failed`, ...worst.map(([message, times]) => `  ${times} × ${message}`)].join("\n")
}
