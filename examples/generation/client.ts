/**
 * Shows stories as they are written: `node examples/generation/client.ts [--url=<url>] [prompts]`, all of them at the
 * same time, over gRPC or HTTP, as the URL says. A program that ends, stops the model.
 */
import { parseArgs } from "node:util"
import { Client } from "@nereid/client"
import { Writer } from "./contract.ts"

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "grpc://localhost:8001" } },
  allowPositionals: true,
})
const prompts = positionals.length > 0 ? positionals : ["Ada was a baker"]

await using writer = await Client.connect(Writer, { url: values.url })

const write = async (PROMPT: string): Promise<void> => {
  let text = PROMPT
  for await (const { CHARACTER } of writer.stream({ PROMPT }, { parameters: { seed: 1 } })) {
    text += CHARACTER
    if (prompts.length === 1) process.stdout.write(text.length === PROMPT.length + 1 ? text : CHARACTER)
  }
  console.log(prompts.length === 1 ? "" : text)
}

await Promise.all(prompts.map(write))
