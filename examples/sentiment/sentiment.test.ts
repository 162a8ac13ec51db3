/** The sentiment pipeline and its parts over the network, and the accuracy of the model. */
import { existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it, test } from "vitest"
import { Bert, BertLive, Sentiment, SentimentLive, Tokenize, TokenizeLive, Verdict, VerdictLive } from "./server.ts"

const anyPort = { host: "127.0.0.1", port: 0 }
const live = Layer.mergeAll(SentimentLive, TokenizeLive, BertLive, VerdictLive)
const start = () =>
  Server.start([Sentiment, Tokenize, Bert, Verdict], live, { http: anyPort, grpc: anyPort, metrics: false })

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())

type Transport = "grpc" | "http"
const url = (transport: Transport = "grpc") => `${transport}://127.0.0.1:${server[transport].port}`

/** Reads sentences of SST-2 and their labels; the model was trained on none of them. */
const read = (file: string) =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => {
      const [label, TEXT = ""] = line.split("\t")
      return { TEXT, CLASS: label === "1" ? "positive" : "negative" }
    })

const sample = read(join(import.meta.dirname, "dev-sample.tsv"))

// All of dev.tsv is not in the repository.
const shared = process.env["SHARED_DATA"] ?? join(import.meta.dirname, "../../../shared/data")
const allFile = join(shared, "sst2/dev.tsv")

const post = async (body: object | string, model = "sentiment") => {
  const response = await fetch(`${url("http")}/v2/models/${model}/infer`, {
    method: "POST",
    headers: { connection: "close" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
  return { status: response.status, tag: response.headers.get("nereid-error"), text: await response.text() }
}

const texts = (...data: ReadonlyArray<string>) => ({
  inputs: [{ name: "TEXT", datatype: "BYTES", shape: [data.length, 1], data }],
})

/** Returns the server's counts of a model: rows, and executed batches. */
const counts = (name: string) => {
  const model = server.models.find((model) => model.description.name === name)
  if (model === undefined) throw new Error(`no model '${name}'`)
  return { rows: model.description.statistics.inferenceCount, batches: model.description.statistics.executionCount }
}

it("is small enough to live in the repository", () => {
  const { size } = statSync(new URL("bert.onnx", import.meta.url))
  expect(size).toBeLessThan(2_000_000)
})

/** Counts the correct classifications of the served model, with all sentences in flight at once. */
const right = async (sentences: typeof sample, transport: Transport) => {
  await using model = await Client.connect(Sentiment, { url: url(transport) })
  const verdicts = await Promise.all(sentences.map(({ TEXT }) => model.infer({ TEXT })))
  return sentences.filter(({ CLASS }, index) => verdicts[index]?.CLASS === CLASS).length
}

// A processor that rounds otherwise may turn a sentence on the edge.
const sampleRight = 157
const onTheEdge = 2

test.each<Transport>(["grpc", "http"])(
  "the sample's sentences are as often right as the README says, over %s",
  async (transport) => {
    expect(sample).toHaveLength(200)
    expect(Math.abs((await right(sample, transport)) - sampleRight)).toBeLessThanOrEqual(onTheEdge)
  },
)

test.skipIf(!existsSync(allFile))("at least 80 % of dev.tsv is right, where it is at hand", async () => {
  const all = read(allFile)
  expect(all).toHaveLength(872)
  expect((await right(all, "grpc")) / all.length).toBeGreaterThanOrEqual(0.8)
})

test.each([
  ["This is a great movie!", "positive"],
  ["A dull, lifeless film that wastes its cast.", "negative"],
  ["I don't like it.", "negative"],
  ["Wonderful: funny, warm and beautifully acted.", "positive"],
])("%j is %s", async (TEXT, expected) => {
  await using model = await Client.connect(Sentiment, { url: url() })
  const { CLASS, PROB } = await model.infer({ TEXT })
  expect(CLASS).toBe(expected)
  expect(PROB).toBeGreaterThan(0.5)
  expect(PROB).toBeLessThanOrEqual(1)
})

describe("in one request", () => {
  it("texts are answered as a batch of one tensor, whatever their lengths", async () => {
    const { status, text } = await post(texts("great", "awful ".repeat(50), ""))
    expect(status).toBe(200)
    expect(JSON.parse(text)).toMatchObject({
      outputs: [
        { name: "CLASS", datatype: "INT32", shape: [3, 1], data: [1, 0, expect.any(Number)] },
        { name: "PROB", datatype: "FP32", shape: [3, 1] },
      ],
    })
  })

  it("each step works once, and concurrent requests share the network's batches", async () => {
    const steps = ["tokenize", "bert", "verdict"]
    const before = steps.map(counts)
    await using model = await Client.connect(Sentiment, { url: url() })
    const TEXT = (index: number) => `Texts of like length, the same batch${", again".repeat(index % 3)}.`
    await Promise.all(Array.from({ length: 40 }, (_, index) => model.infer({ TEXT: TEXT(index) })))
    const after = steps.map(counts)
    expect(after.map(({ rows }, step) => rows - (before[step]?.rows ?? 0))).toEqual([40, 40, 40])
    expect((after[1]?.batches ?? 0) - (before[1]?.batches ?? 0)).toBeLessThan(40)
  })

  it("gives the result of its three steps called one by one", async () => {
    await using tokenize = await Client.connect(Tokenize, { url: url() })
    await using bert = await Client.connect(Bert, { url: url() })
    await using verdict = await Client.connect(Verdict, { url: url() })
    await using model = await Client.connect(Sentiment, { url: url() })
    for (const { TEXT } of sample.slice(0, 5)) {
      const { CLASS, PROB } = await verdict.infer(await bert.infer(await tokenize.infer({ TEXT })))
      const whole = await model.infer({ TEXT })
      expect(whole.CLASS).toBe(CLASS)
      expect(whole.PROB).toBeCloseTo(PROB, 5)
    }
  })
})

describe("tokenize", () => {
  it("gives as many tokens as the text has, at most 128", async () => {
    await using model = await Client.connect(Tokenize, { url: url() })
    const { input_ids, attention_mask } = await model.infer({ TEXT: "a great movie" })
    expect(input_ids.shape).toEqual([5])
    expect([...attention_mask.data]).toEqual([1n, 1n, 1n, 1n, 1n])
    expect((await model.infer({ TEXT: "good ".repeat(1000) })).input_ids.shape).toEqual([128])
  })
})

describe("bert", () => {
  it("does not look at padding", async () => {
    await using tokenize = await Client.connect(Tokenize, { url: url() })
    await using bert = await Client.connect(Bert, { url: url() })
    const { input_ids, attention_mask } = await tokenize.infer({ TEXT: "a great movie" })
    const longer = (data: BigInt64Array, padding: bigint) => {
      const padded = new BigInt64Array(100).fill(padding)
      padded.set(data)
      return Tensor.make("INT64", [100], padded)
    }
    const { logits } = await bert.infer({ input_ids, attention_mask })
    const padded = { input_ids: longer(input_ids.data, 7n), attention_mask: longer(attention_mask.data, 0n) }
    const repeated = await bert.infer(padded)
    for (const [index, logit] of logits.data.entries()) expect(repeated.logits.data[index]).toBeCloseTo(logit, 4)
  })

  it("accepts any number of tokens and unknown ids, so that no request fails the batch of others", async () => {
    await using bert = await Client.connect(Bert, { url: url() })
    for (const ids of [[-1n, 10n ** 12n, 5n], Array.from({ length: 500 }, () => 9n)]) {
      const input_ids = Tensor.make("INT64", [ids.length], BigInt64Array.from(ids))
      const attention_mask = Tensor.make("INT64", [ids.length], new BigInt64Array(ids.length).fill(1n))
      const { logits } = await bert.infer({ input_ids, attention_mask })
      for (const logit of logits.data) expect(logit).not.toBeNaN()
    }
  })
})

it("the verdict's probability is the softmax of the logits", async () => {
  await using model = await Client.connect(Verdict, { url: url() })
  const { CLASS, PROB } = await model.infer({ logits: Tensor.make("FP32", [2], Float32Array.of(-1.5, 2.1)) })
  expect(CLASS).toBe("positive")
  expect(PROB).toBeCloseTo(0.973403, 6)
})

describe("an input that is not a text", () => {
  const cases: ReadonlyArray<readonly [string, object, string]> = [
    ["a text that is too long", texts("x".repeat(10_001)), "a length of at most 10000"],
    ["a number", { inputs: [{ name: "TEXT", datatype: "FP32", shape: [1, 1], data: [1] }] }, "FP32"],
    ["two texts in a row", { inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 2], data: ["a", "b"] }] }, "[1,2]"],
  ]

  test.each(cases)("%s is an InvalidRequest with the reason", async (_, body, expected) => {
    const { status, tag, text } = await post(body)
    expect({ status, tag }).toEqual({ status: 400, tag: "InvalidRequest" })
    expect(text).toContain(expected)
  })

  it("refuses bytes that are not UTF-8", async () => {
    const response = await fetch(`${url("http")}/v2/models/sentiment/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": "0", connection: "close" },
      body: Uint8Array.of(0xff, 0xfe),
    })
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("UTF-8")])
  })
})
