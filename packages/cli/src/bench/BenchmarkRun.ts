/** One benchmark of the command line: runs it, prints its results, and writes its files. */
import { openSync, writeFileSync } from "node:fs"
import * as Benchmark from "@nereid/bench/internal/benchmark/Benchmark"
import * as Curve from "@nereid/bench/internal/report/Curve"
import * as Level from "@nereid/bench/internal/load/Level"
import * as Metronome from "@nereid/bench/internal/load/Metronome"
import * as Report from "@nereid/bench/internal/report/Report"
import * as Summary from "@nereid/bench/internal/report/Summary"
import * as Sweep from "@nereid/bench/internal/load/Sweep"
import * as Table from "@nereid/bench/internal/report/Table"
import type * as BenchLoadFlags from "../flags/BenchLoadFlags.ts"
import * as Heading from "./Heading.ts"
import * as Outcome from "./Outcome.ts"
import { Progress } from "./Progress.ts"

interface Files {
  readonly json: string | undefined
  readonly svg: string | undefined
  readonly csv: string | undefined
}

/**
 * Runs a benchmark and prints its results.
 * @throws Error after printing, if anything failed
 */
export const run = async (
  options: Benchmark.BenchmarkOptions,
  load: BenchLoadFlags.LoadOptions,
  files: Files,
): Promise<void> => {
  // Reports an unwritable file before the load, not after it.
  for (const file of [files.json, files.svg, files.csv]) if (file !== undefined) openSync(file, "a")
  const benchmark = await Benchmark.prepare(options)
  const clock = Metronome.start()
  const progress = new Progress(process.stderr, duration(load))
  const say = (line: string) => {
    progress.clear()
    process.stdout.write(`${line}\n`)
  }
  const { percentages } = load
  const results: Array<Sweep.LevelResult> = []
  const summaries: Array<Summary.Summary> = []
  /** Error that ended the sweep. The levels before it are still results. */
  let broken: unknown
  try {
    for (const line of Heading.lines(benchmark, options, load)) say(line)
    const table: Table.TableOptions = {
      open: load.levels.some((level) => "times" in level || Level.isOpen(level)),
      deadline: load.deadline !== undefined,
      batchSize: benchmark.batchSize,
      percentages,
      server: (await benchmark.statistics()) !== undefined,
    }
    say(Table.head(table))
    const onRound = (level: Level.Level | Level.Multiple, round: number) => {
      const progressText = round === 0 ? "warming up" : `round ${round} of ${load.rounds}`
      progress.begin(`${Level.print(level)}, ${progressText}`, milliseconds(round === 0 ? load.warmUp : load.extent))
    }
    for await (const result of Sweep.run({ ...load, ...benchmark, seed: options.seed, clock, onRound })) {
      const summary = Summary.make(result, percentages)
      results.push(result)
      summaries.push(summary)
      say(Table.row(summary, table))
      if ((summary.percentiles.get(percentages.at(-1) ?? 99) ?? 0) > load.threshold) break
    }
  } catch (error) {
    broken = error
  } finally {
    progress.end()
    clock.close()
    benchmark.close()
  }
  for (const line of Outcome.remarks(summaries)) say(line)
  const url = Heading.address(options)
  const report = () => Report.make(results, { benchmark, options, url, percentages, date: new Date() })
  if (files.json !== undefined) writeFileSync(files.json, `${JSON.stringify(report(), null, 2)}\n`)
  if (files.csv !== undefined) writeFileSync(files.csv, Table.csv(summaries, percentages))
  const subtitle = `${url}; ${Heading.method(options, load)}`
  const picture = { title: Heading.title(options), subtitle, percentages }
  if (files.svg !== undefined) writeFileSync(files.svg, Curve.svg(summaries, picture))
  if (broken !== undefined) throw broken
  const failure = Outcome.failure(summaries)
  if (failure !== undefined) throw new Error(failure)
}

/** Milliseconds of all levels; 0 where it ends after so many requests, which may take any time. */
const duration = ({ levels, rounds, extent, warmUp }: BenchLoadFlags.LoadOptions): number =>
  levels.length * (milliseconds(warmUp) + rounds * milliseconds(extent))

const milliseconds = (extent: BenchLoadFlags.LoadOptions["extent"] | undefined): number =>
  extent !== undefined && "seconds" in extent ? extent.seconds * 1000 : 0
