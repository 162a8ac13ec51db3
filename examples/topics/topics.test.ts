/** The pipeline over the network, with its step in Python, and what its README shows. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Program } from "../../test/Program.ts"
import { python } from "../../test/fixtures/python.ts"
import { Topic, Words } from "./contract.ts"

const server = join(import.meta.dirname, "server.ts")

describe.skipIf(python === undefined)("the pipeline", () => {
  let program: Program
  let grpc = ""
  let http = ""
  beforeAll(async () => {
    // The server of the README, on free ports.
    const start = `
      const { Server } = await import("@nereid/server")
      const { Layer } = await import("effect")
      const all = await import(${JSON.stringify(server)})
      const port = { host: "127.0.0.1", port: 0 }
      const layer = Layer.mergeAll(all.TopicLive, all.WordsLive, all.ClassifyLive)
      await Server.start([all.Topic, all.Words, all.Classify], layer, { http: port, grpc: port, metrics: false, announce: true })`
    program = new Program(["--input-type=module", "--eval", start], { NEREID_PYTHON: python })
    grpc = `grpc://${(await program.match(/GRPCInferenceService at (\S+)/))[1]}`
    http = `http://${(await program.match(/HTTPService at (\S+)/))[1]}`
  })
  afterAll(() => program[Symbol.asyncDispose]())

  it("prints what the README says, over gRPC and HTTP", async () => {
    const readme = readFileSync(join(import.meta.dirname, "README.md"), "utf8")
    const [, expected] = /prints\n\n```\n([^]*?)```/.exec(readme) ?? []
    const texts = ["Where is my package?", "I was charged twice!", "My password doesn't work"]
    for (const url of [grpc, http]) {
      const client = new Program([join(import.meta.dirname, "client.ts"), `--url=${url}`, ...texts])
      expect((await client.ended).output).toBe(expected)
    }
  })

  it("gives each text its topic, at any length and among others", async () => {
    await using model = await Client.connect(Topic, { url: grpc })
    const texts = ["refund", "parcel ".repeat(200), "", "invoice for my company, please", "login"]
    const answers = await Promise.all(texts.map((TEXT) => model.infer({ TEXT })))
    expect(answers.map(({ TOPIC }) => TOPIC).filter((_, index) => index !== 2)).toEqual([
      "return",
      "delivery",
      "payment",
      "account",
    ])
    // Without a word, all topics are as probable.
    expect(answers[2]?.PROBABILITY).toBe(0.25)
  })

  it("has the words of train.py", async () => {
    await using model = await Client.connect(Words, { url: grpc })
    const { ids, count } = await model.infer({ TEXT: "My ZEBRA's parcel" })
    expect([...ids.data].map((id) => id > 0n)).toEqual([true, false, false, true])
    expect(count).toBe(4n)
  })

  it("finds the topic of almost all sentences that it was trained on", async () => {
    const [, ...lines] = readFileSync(join(import.meta.dirname, "sentences.tsv"), "utf8")
      .trimEnd()
      .split("\n")
    await using model = await Client.connect(Topic, { url: grpc })
    const sentences = lines.map((line) => line.split("\t"))
    const answers = await Promise.all(sentences.map(([, TEXT = ""]) => model.infer({ TEXT })))
    const right = answers.filter(({ TOPIC }, index) => TOPIC === sentences[index]?.[0])
    expect(right.length).toBeGreaterThan(0.95 * sentences.length)
  })
})
