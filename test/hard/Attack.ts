/** An attack on a server, and the results that it must have. */
import type { Target } from "./Target.ts"

/** Settings of a run of an attack. */
export interface Run {
  /** Time of attacks that have no end of their own, about. */
  readonly seconds: number
  readonly seed: number
}

export interface Attack {
  readonly name: string
  /** Time of a whole run, in seconds. A short one has one second. */
  readonly seconds: number
  /** The test that does the same for a shorter time, if there is one. */
  readonly shortTest?: string
  readonly start: () => Promise<Target>
  /** Returns the result as a cell of the table. Throws if the server fails, or `Skipped`. */
  readonly run: (target: Target, run: Run) => Promise<string>
}

/** The machine lacks something that the attack needs. */
export class Skipped extends Error {}

export const sleep = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** Waits until a condition holds; throws after two minutes. */
export const until = async (what: string, condition: () => boolean | Promise<boolean>): Promise<void> => {
  const latest = performance.now() + 120_000
  while (!(await condition())) {
    if (performance.now() > latest) throw new Error(`never: ${what}`)
    await sleep(50)
  }
}

/** Repeats `step` for so many seconds. */
export const repeated = async (seconds: number, step: (round: number) => Promise<unknown>): Promise<number> => {
  const latest = performance.now() + seconds * 1000
  let round = 0
  while (performance.now() < latest) await step(round++)
  return round
}

export const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`
