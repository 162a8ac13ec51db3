/**
 * Models of the examples on the calling thread, as a program runs them without a server's checks, batches and limits.
 */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { InferenceSession, Tensor } from "onnxruntime-node"
import * as Tokenizer from "../../examples/sentiment/Tokenizer.ts"

/** A tensor of the protocol in JSON. */
export interface JsonTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  readonly data: ReadonlyArray<string | number>
}

export type Model = (inputs: ReadonlyArray<JsonTensor>) => Promise<ReadonlyArray<JsonTensor>>

const examples = new URL("../../examples/", import.meta.url)

const load = async (file: string): Promise<InferenceSession> =>
  InferenceSession.create(await readFile(fileURLToPath(new URL(file, examples))), {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
  })

const output = (name: string, datatype: string, value: string | number): JsonTensor => ({
  name,
  datatype,
  shape: [1, 1],
  data: [value],
})

/** The tokenizer, one run of the network for each text, and the softmax. */
export const sentiment = async (): Promise<Model> => {
  const tokenizer = await Tokenizer.load(new URL("sentiment/tokenizer.json", examples))
  const session = await load("sentiment/bert.onnx")
  return async ([input]) => {
    const ids = BigInt64Array.from(tokenizer.encode(String(input?.data[0])), BigInt)
    const tensor = (data: BigInt64Array) => new Tensor("int64", data, [1, data.length])
    const { logits } = await session.run({
      input_ids: tensor(ids),
      attention_mask: tensor(new BigInt64Array(ids.length).fill(1n)),
    })
    const [negative = 0, positive = 0] = (logits?.data ?? []) as Float32Array
    const probability = 1 / (1 + Math.exp(negative - positive))
    const isPositive = positive > negative
    return [
      output("CLASS", "BYTES", isPositive ? "positive" : "negative"),
      output("PROB", "FP32", Math.fround(isPositive ? probability : 1 - probability)),
    ]
  }
}

/** One run of the network for each picture. */
export const digits = async (): Promise<Model> => {
  const session = await load("digits/digits.onnx")
  const [name = ""] = session.inputNames
  return async ([image]) => {
    const data = Float32Array.from(image?.data ?? [], Number)
    const { logits } = await session.run({ [name]: new Tensor("float32", data, [1, 1, 28, 28]) })
    return [{ name: "logits", datatype: "FP32", shape: [1, 10], data: [...((logits?.data ?? []) as Float32Array)] }]
  }
}
