/**
 * Classifies photographed digits: `node examples/image/client.ts <photograph.jpg> ...`. The files are sent unchanged.
 */
import { readFile } from "node:fs/promises"
import { parseArgs } from "node:util"
import { Client } from "@nereid/client"
import { PhotographedDigit } from "./contract.ts"

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "grpc://localhost:8001" } },
  allowPositionals: true,
})

await using model = await Client.connect(PhotographedDigit, { url: values.url })
await Promise.all(
  positionals.map(async (file) => {
    const { DIGIT, PROBABILITY } = await model.infer({ IMAGE: await readFile(file) })
    console.log(`${file}: ${DIGIT} (${(100 * PROBABILITY).toFixed(0)} %)`)
  }),
)
