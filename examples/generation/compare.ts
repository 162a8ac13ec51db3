/**
 * Characters per second for 1, 8 and 32 callers, and for 8 callers that are answered one at a time:
 *
 *   node examples/generation/compare.ts [seconds of each round]
 *
 * Callers are in the same process as the models. Each asks for one story after another.
 */
import { Duration, Effect, Layer, Semaphore, Stream } from "effect"
import { Decoder, DecoderLive, Writer, WriterLive } from "./server.ts"

interface Case {
  readonly callers: number
  readonly isOneAtATime: boolean
}

interface Round {
  readonly charactersPerSecond: number
  readonly rowsPerBatch: number
}

const cases: ReadonlyArray<Case> = [
  { callers: 1, isOneAtATime: false },
  { callers: 8, isOneAtATime: true },
  { callers: 8, isOneAtATime: false },
  { callers: 32, isOneAtATime: false },
]
const rounds = 5
const seconds = Number(process.argv[2] ?? 3)

const measure = Effect.fnUntraced(function* ({ callers, isOneAtATime }: Case, seconds: number) {
  const writer = yield* Writer
  const { statistics } = (yield* Decoder).model.description
  const permits = yield* Semaphore.make(isOneAtATime ? 1 : callers)
  let characters = 0
  const caller = writer.stream({ PROMPT: "" }).pipe(
    Stream.runForEach(() => Effect.sync(() => (characters += 1))),
    permits.withPermit,
    Effect.forever,
  )
  const [rows, batches] = [statistics.inferenceCount, statistics.executionCount]
  const started = performance.now()
  yield* Effect.all(
    Array.from({ length: callers }, () => caller),
    { concurrency: "unbounded" },
  ).pipe(Effect.timeoutOption(Duration.seconds(seconds)))
  const round: Round = {
    charactersPerSecond: (characters * 1000) / (performance.now() - started),
    rowsPerBatch: (statistics.inferenceCount - rows) / (statistics.executionCount - batches),
  }
  return round
})

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN

const program = Effect.gen(function* () {
  const results = cases.map((of) => ({ of, measured: new Array<Round>() }))
  for (let round = 0; round <= rounds; round++) {
    for (const { of, measured } of results) {
      const figures = yield* measure(of, round === 0 ? 1 : seconds)
      if (round > 0) measured.push(figures) // the first one warms up
    }
  }
  console.log("| callers | characters/s | rows in a batch |\n|---|--:|--:|")
  for (const { of, measured } of results) {
    const perSecond = median(measured.map(({ charactersPerSecond }) => charactersPerSecond))
    const rows = median(measured.map(({ rowsPerBatch }) => rowsPerBatch))
    const name = `${of.callers}${of.isOneAtATime ? ", one at a time" : ""}`
    console.log(`| ${name} | ${Math.round(perSecond).toLocaleString("en")} | ${rows.toFixed(1)} |`)
  }
})

await Effect.runPromise(program.pipe(Effect.provide(Layer.provideMerge(WriterLive, DecoderLive))))
