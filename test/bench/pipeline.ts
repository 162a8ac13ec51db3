/** The baseline for the text pipeline, run as a child: node:http, JSON.parse, and the models of Naive.ts. */
import { createServer } from "node:http"
import { listen } from "./Listening.ts"
import * as Naive from "./Naive.ts"
import { report } from "./Reporter.ts"

const sentiment = await Naive.sentiment()

const http = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", async () => {
    const { inputs } = JSON.parse(Buffer.concat(chunks).toString())
    const reply = JSON.stringify({ model_name: "sentiment", model_version: "1", outputs: await sentiment(inputs) })
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(reply) })
    response.end(reply)
  })
})

report({ ports: { grpc: 0, http: await listen(http) } })
