/**
 * Shows words as they come: `node examples/words/client.ts [url] [prompt]`, over HTTP's generate_stream, with nothing but
 * fetch. (The typed client asks models that answer once.)
 */
import { createInterface } from "node:readline"
import { Readable } from "node:stream"

const [url = "http://localhost:8000", prompt = "In the night"] = process.argv.slice(2)

const answer = await fetch(`${url}/v2/models/words/generate_stream`, {
  method: "POST",
  body: JSON.stringify({ PROMPT: prompt, MAX_WORDS: 50, SEED: 1 }),
})
if (!answer.ok || answer.body === null) throw new Error(`${answer.status}: ${await answer.text()}`)

process.stdout.write(prompt)
// Each response is one line, `data: {"model_name":"words",…,"WORD":"the"}`, and an empty one; a failure has `error`.
for await (const line of createInterface({ input: Readable.fromWeb(answer.body) })) {
  if (!line.startsWith("data: ")) continue
  const { WORD, error }: { WORD?: string; error?: string } = JSON.parse(line.slice("data: ".length))
  if (error !== undefined) throw new Error(error)
  process.stdout.write(` ${WORD}`)
}
console.log()
