/** Classifies the sentiment of texts: `node examples/sentiment/client.ts <text> ...`. */
import { parseArgs } from "node:util"
import { Client } from "@nereid/client"
import { Sentiment } from "./contract.ts"

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "grpc://localhost:8001" } },
  allowPositionals: true,
})

await using model = await Client.connect(Sentiment, { url: values.url })
const verdicts = await Promise.all(positionals.map((TEXT) => model.infer({ TEXT })))
for (const [index, { CLASS, PROB }] of verdicts.entries()) {
  console.log(`${positionals[index]}: ${CLASS} (${(100 * PROB).toFixed(0)} %)`)
}
