/** Advice of a performance engineer: an option to change, with the figure that proves it. */

export const adviceKinds = [
  "small-batches",
  "full-batches",
  "no-batching",
  "saturated",
  "useless-delay",
  "queue-full",
  "queue-timeouts",
  "deadlines",
  "event-loop-late",
  "idle-cache",
  "held-memory",
  "tensor-copies",
  "idle-instances",
  "failures",
] as const

export type AdviceKind = (typeof adviceKinds)[number]

export interface Advice {
  /** The same for the same subject, as long as the advice holds: the kind, and the model and version if there is one. */
  readonly id: string
  readonly kind: AdviceKind
  /** `problem`: callers notice it. `improvement`: resources are wasted. */
  readonly severity: "problem" | "improvement"
  /** Name and version of the model; absent for advice about the process. */
  readonly model?: string
  readonly version?: string
  /** One or two sentences with the figures. It contains the name of no model. */
  readonly text: string
  readonly figure: Figure
  /** The option to change, by its name in code, in `config.pbtxt` or on the command line. */
  readonly option: string
  /** Page and heading below docs/guides, such as `batching.md#how-a-batch-closes`. */
  readonly guide: string
}

/** The figure that decided. */
export interface Figure {
  readonly name: string
  readonly value: number
  /** Empty for a count or a ratio. */
  readonly unit: "" | "ms" | "%"
}
