/**
 * One request for a sentiment against the three calls that it replaces, from a client in another process:
 *
 *   node examples/sentiment/compare.ts [url]
 */
import { readFile } from "node:fs/promises"
import { Client } from "@nereid/client"
import { Bert, Sentiment, Tokenize, Verdict } from "./contract.ts"

const rounds = 5
const requests = 400

const [url = "grpc://localhost:8001"] = process.argv.slice(2)
await using sentiment = await Client.connect(Sentiment, { url })
await using tokenize = await Client.connect(Tokenize, { url })
await using bert = await Client.connect(Bert, { url })
await using verdict = await Client.connect(Verdict, { url })

const lines = (await readFile(new URL("dev-sample.tsv", import.meta.url), "utf8")).trimEnd().split("\n").slice(1)
const texts = lines.map((line) => line.split("\t")[1] ?? "")

const transports = {
  "one request": (TEXT: string) => sentiment.infer({ TEXT }),
  "three calls": async (TEXT: string) => verdict.infer(await bert.infer(await tokenize.infer({ TEXT }))),
}

/** Measures with concurrent callers: median latency in milliseconds, and requests per second. */
const measure = async (call: (text: string) => Promise<unknown>, callers: number) => {
  const took: Array<number> = []
  const began = performance.now()
  const caller = async () => {
    while (took.length + callers <= requests) {
      const started = performance.now()
      await call(texts[took.length % texts.length] ?? "")
      took.push(performance.now() - started)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { latency: median(took), rate: (took.length * 1000) / (performance.now() - began) }
}

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN

for (const callers of [1, 16]) {
  const results = Object.entries(transports).map(([name, call]) => ({
    name,
    call,
    latencies: new Array<number>(),
    rates: new Array<number>(),
  }))
  for (let round = 0; round <= rounds; round++) {
    for (const { call, latencies, rates } of results) {
      const { latency, rate } = await measure(call, callers)
      if (round === 0) continue // warm-up
      latencies.push(latency)
      rates.push(rate)
    }
  }
  for (const { name, latencies, rates } of results) {
    console.log(`${name}, ${callers} in flight: ${median(latencies).toFixed(2)} ms, ${median(rates).toFixed(0)}/s`)
  }
}
