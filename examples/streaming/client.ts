/**
 * Shows words as they come: `node examples/streaming/client.ts [url] [prompt]`, with the types of the contract, over
 * gRPC or HTTP, as the URL says. A loop that is left, or a program that ends, stops the model.
 */
import { Client } from "@nereid/client"
import { Words } from "./contract.ts"

const [url = "grpc://localhost:8001", prompt = "In the night"] = process.argv.slice(2)

await using words = await Client.connect(Words, { url })

process.stdout.write(prompt)
for await (const { WORD } of words.stream({ PROMPT: prompt, MAX_WORDS: 50, SEED: 1 })) process.stdout.write(` ${WORD}`)
console.log()
