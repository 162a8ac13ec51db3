/**
 * Recognises pictures from files: `node examples/digits/client.ts <picture.png> ...`, 28x28 grey, white ink on black.
 */
import { readFile } from "node:fs/promises"
import { parseArgs } from "node:util"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { decode } from "fast-png"
import { Digits } from "./contract.ts"

const { values, positionals } = parseArgs({
  options: { url: { type: "string", default: "grpc://localhost:8001" } },
  allowPositionals: true,
})

await using model = await Client.connect(Digits, { url: values.url })
await Promise.all(
  positionals.map(async (file) => {
    const { width, height, channels, data } = decode(await readFile(file))
    if (width !== 28 || height !== 28 || channels !== 1) {
      throw new Error(`${file} is ${width}x${height} with ${channels} channels, expected 28x28 grey`)
    }
    const { logits } = await model.infer({
      image: Tensor.make(
        "FP32",
        [1, 28, 28],
        Float32Array.from(data, (grey) => grey / 255),
      ),
    })
    console.log(`${file}: ${logits.data.indexOf(Math.max(...logits.data))}`)
  }),
)
