/** Findings of a check, and their reports: lines for people, one JSON document for programs. */

export interface Finding {
  /** Subject of the check. */
  readonly name: string
  /** Result. `note`: not checked, or not needed by every server. `warning`: works, but possibly not as expected. */
  readonly status: "ok" | "note" | "warning" | "failed"
  /** Description in one line. */
  readonly message: string
  /** The same for programs. */
  readonly details?: Readonly<Record<string, unknown>>
}

export interface Report {
  readonly nereid: string
  /** Whether no check has failed. */
  readonly ok: boolean
  readonly findings: ReadonlyArray<Finding>
}

export const report = (nereid: string, findings: ReadonlyArray<Finding>): Report => ({
  nereid,
  ok: findings.every(({ status }) => status !== "failed"),
  findings,
})

export const text = ({ nereid, ok, findings }: Report): string => {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const lines = findings.map(
    ({ name, status, message }) => `${status.padEnd("warning".length)}  ${name.padEnd(width)}  ${message}`,
  )
  const failed = findings.filter(({ status }) => status === "failed").map(({ name }) => name)
  return [`nereid ${nereid}`, ...lines, ok ? "This machine can run a server." : `Failed: ${failed.join(", ")}`].join(
    "\n",
  )
}
