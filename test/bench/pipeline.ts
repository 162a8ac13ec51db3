/**
 * The baseline for the text pipeline, run as a child: node:http, JSON.parse, the same tokenizer, and one run of
 * onnxruntime-node for each text on the thread of the event loop, without validation, batches and limits.
 */
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { InferenceSession, Tensor } from "onnxruntime-node"
import * as Tokenizer from "../../examples/sentiment/Tokenizer.ts"
import { listen } from "./Listening.ts"
import { report } from "./Reporter.ts"

const folder = new URL("../../examples/sentiment/", import.meta.url)
const tokenizer = await Tokenizer.load(new URL("tokenizer.json", folder))
const session = await InferenceSession.create(await readFile(fileURLToPath(new URL("bert.onnx", folder))), {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
})

const sentiment = async (text: string) => {
  const ids = BigInt64Array.from(tokenizer.encode(text), BigInt)
  const tensor = (data: BigInt64Array) => new Tensor("int64", data, [1, data.length])
  const { logits } = await session.run({
    input_ids: tensor(ids),
    attention_mask: tensor(new BigInt64Array(ids.length).fill(1n)),
  })
  const [negative = 0, positive = 0] = (logits?.data ?? []) as Float32Array
  const probability = 1 / (1 + Math.exp(negative - positive))
  const isPositive = positive > negative
  return { label: isPositive ? "positive" : "negative", probability: isPositive ? probability : 1 - probability }
}

const output = (name: string, datatype: string, value: string | number) => ({
  name,
  datatype,
  shape: [1, 1],
  data: [value],
})

const http = createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", async () => {
    const { inputs } = JSON.parse(Buffer.concat(chunks).toString())
    const { label, probability } = await sentiment(inputs[0].data[0])
    const outputs = [output("CLASS", "BYTES", label), output("PROB", "FP32", Math.fround(probability))]
    const reply = JSON.stringify({ model_name: "sentiment", model_version: "1", outputs })
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(reply) })
    response.end(reply)
  })
})

report({ ports: { grpc: 0, http: await listen(http) } })
