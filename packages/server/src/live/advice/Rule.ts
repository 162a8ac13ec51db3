/** A rule of the advice: a pure function of what was measured. It says nothing unless the figures prove it. */
import type { Advice, AdviceKind } from "@nereid/dashboard/internal/live/Advice"
import type { LoadWindow, ModelWindow } from "./LoadWindow.ts"

/** Advice without its subject. */
export type Finding = Omit<Advice, "id" | "kind" | "model" | "version">

export interface ModelRule {
  readonly kind: AdviceKind
  /** `steps` is the number of steps of the window. */
  readonly find: (model: ModelWindow, steps: number) => Finding | undefined
}

export interface ProcessRule {
  readonly kind: AdviceKind
  readonly find: (window: LoadWindow) => (Finding & Pick<Advice, "model" | "version">) | undefined
}

/** A number with at most one decimal below 10, and none above. */
export const figure = (value: number): string => (value < 10 ? String(Math.round(value * 10) / 10) : value.toFixed(0))

export const rounded = (value: number): number => Math.round(value * 10) / 10

/** A share as a percentage, such as "0.4 %". */
export const percent = (share: number): string => `${figure(share * 100)} %`
