/** Two sides in turns, as often as there are rounds; of each figure the median. */
import { join } from "node:path"
import * as Profile from "./Profile.ts"
import type { Side } from "./Side.ts"

export interface Figures {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly p999: number
  /** Microseconds of the measured process, all its threads, per request. */
  readonly cpu: number
  /** Share of the time that the measured process was busy: with more cores than one, above 1. */
  readonly busy: number
  /** The same of what stands at the other end: near 1 it, and not the measured process, was the limit. */
  readonly other: number
}

export interface Comparison {
  /** Medians of the rounds. */
  readonly nereid: Figures
  readonly baseline: Figures
  readonly errors: ReadonlyArray<string>
  /** Summaries of the CPU profiles, if requested. */
  readonly notes: ReadonlyArray<string>
}

export interface Settings {
  readonly rounds: number
  /** Per round and side. */
  readonly seconds: number
  /** Before the first round, per side: until V8 has compiled what it will, which shares a core with the server. */
  readonly warmUp: number
  /** Folder for CPU profiles of both sides, from a separate round. */
  readonly profiles: string | undefined
}

export const compare = async (
  name: string,
  nereid: Side,
  baseline: Side,
  { rounds, seconds, warmUp, profiles }: Settings,
): Promise<Comparison> => {
  const sides = [
    { of: "ours", side: nereid, figures: new Array<Figures>() },
    { of: "baseline", side: baseline, figures: new Array<Figures>() },
  ] as const
  const errors: Array<string> = []
  const notes: Array<string> = []

  for (const { side } of sides) errors.push(...(await side.run(warmUp)).errors)
  for (let round = 0; round < rounds; round++) {
    for (const { side, figures } of sides) {
      const [before, otherBefore] = [await side.cpu(), await side.otherCpu()]
      const { requests, errors: wrong, ...measured } = await side.run(seconds)
      const [after, otherAfter] = [await side.cpu(), await side.otherCpu()]
      const cpu = after - before
      const elapsed = (requests / measured.perSecond) * 1e6
      figures.push({
        ...measured,
        cpu: cpu / requests,
        busy: cpu / elapsed,
        other: (otherAfter - otherBefore) / elapsed,
      })
      errors.push(...wrong)
    }
  }
  if (profiles !== undefined) {
    for (const { of, side } of sides) {
      if (side.profile === undefined) continue
      const file = join(profiles, `${name}-${of}.cpuprofile`)
      await side.profile("start")
      errors.push(...(await side.run(seconds)).errors)
      await side.profile({ file })
      notes.push(`${of === "ours" ? "Nereid" : "The baseline"}, in ${file}:\n\n${Profile.table(file)}`)
    }
  }
  return { nereid: medians(sides[0].figures), baseline: medians(sides[1].figures), errors, notes }
}

const medians = (rounds: ReadonlyArray<Figures>): Figures => {
  const of = (figure: keyof Figures) => median(rounds.map((round) => round[figure]))
  return {
    perSecond: of("perSecond"),
    p50: of("p50"),
    p99: of("p99"),
    p999: of("p999"),
    cpu: of("cpu"),
    busy: of("busy"),
    other: of("other"),
  }
}

/** The upper one of an even number. */
const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN
