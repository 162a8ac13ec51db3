/**
 * The baseline for streams, run as a child: node:http, JSON.parse, and one write for each token as a server-sent event,
 * without validation. The events have the bytes of our own.
 */
import { createServer } from "node:http"
import { listen } from "./Listening.ts"
import { report } from "./Reporter.ts"
import { tokens } from "./Tokens.ts"

const http = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", async () => {
    const { COUNT } = JSON.parse(Buffer.concat(chunks).toString())
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" })
    for await (const token of tokens(COUNT)) {
      response.write(`data: ${JSON.stringify({ model_name: "tokens", model_version: "1", ...token })}\n\n`)
    }
    response.end()
  })
})

report({ ports: { grpc: 0, http: await listen(http) } })
