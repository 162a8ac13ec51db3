/** Shared definitions of the cases for the repository under test. */
import type { Claim } from "../Case.ts"

/** Of the repository under test. */
export const on = (...proves: ReadonlyArray<Claim>) => ({ proves, server: "stored" }) as const

/** In a regular expression. */
export const escaped = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)

/** Somewhere in a document. */
export const part = (text: string): RegExp => new RegExp(escaped(text))
