/** Classifies messages to a shop: `node examples/topics/client.ts <text> ...`. */
import { parseArgs } from "node:util"
import { Client } from "@nereid/client"
import { Topic } from "./contract.ts"

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "grpc://localhost:8001" } },
  allowPositionals: true,
})

await using model = await Client.connect(Topic, { url: values.url })
const answers = await Promise.all(positionals.map((TEXT) => model.infer({ TEXT })))
for (const [index, { TOPIC, PROBABILITY }] of answers.entries()) {
  console.log(`${positionals[index]}: ${TOPIC} (${(100 * PROBABILITY).toFixed(0)} %)`)
}
