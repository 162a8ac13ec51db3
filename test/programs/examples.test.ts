/** Every example as its README describes it: served by `nereid serve`, called by its client, over both transports. */
import { readdirSync, readFileSync } from "node:fs"
import { afterAll, beforeAll, expect, it } from "vitest"
import { hasCurl, nereid, Program, root, shell } from "../Program.ts"

let server: Program
let grpc: string
let http: string

beforeAll(async () => {
  server = nereid("serve", "examples/models.ts", "--http-port=0", "--grpc-port=0", "--metrics-port=0")
  http = `http://localhost:${(await server.match(/HTTPService at .*:(\d+)/))[1]}`
  grpc = `grpc://localhost:${(await server.match(/GRPCInferenceService at .*:(\d+)/))[1]}`
  await server.match(/Try:(\n.*){11}\n/)
})

afterAll(() => server[Symbol.asyncDispose]())

const run = async (...args: ReadonlyArray<string>) => (await new Program(args).ended).output

/** The block after the words that announce what a client prints. */
const printed = (readme: string) =>
  /prints\n\n```\n([\s\S]*?)```/.exec(readFileSync(`${root}/${readme}`, "utf8"))?.[1] ?? "no such block"

it("add-sub prints what its README says, over gRPC and HTTP", async () => {
  const expected = printed("examples/add-sub/README.md")
  expect(await run("examples/add-sub/client.ts", grpc)).toBe(expected)
  expect(await run("examples/add-sub/client.ts", http)).toBe(expected)
})

it("digits recognises its pictures from files, over gRPC and HTTP", async () => {
  const names = readdirSync(`${root}/examples/digits/pictures`)
  const pictures = names.map((name) => `examples/digits/pictures/${name}`)
  expect(names.length).toBeGreaterThan(5)
  for (const url of [grpc, http]) {
    const lines = (await run("examples/digits/client.ts", `--url=${url}`, ...pictures)).trim().split("\n")
    const expected = names.map((name) => `examples/digits/pictures/${name}: ${name[0]}`)
    expect(lines.toSorted()).toEqual(expected)
  }
  const some = ["examples/digits/pictures/7-9000.png", "examples/digits/pictures/3-9007.png"]
  const responses = await run("examples/digits/client.ts", `--url=${grpc}`, ...some)
  expect(responses.split("\n").toSorted()).toEqual(printed("examples/digits/README.md").split("\n").toSorted())
})

it("generation prints what its README says, over gRPC and HTTP", async () => {
  const prompts = ["Ada was a baker", "Hugo was a painter"]
  for (const url of [grpc, http]) {
    const stories = await run("examples/generation/client.ts", `--url=${url}`, ...prompts)
    expect(stories.split("\n").toSorted()).toEqual(printed("examples/generation/README.md").split("\n").toSorted())
    expect(await run("examples/generation/client.ts", `--url=${url}`, "Ada was a baker")).toBe(
      `${stories.split("\n").find((story) => story.startsWith("Ada"))}\n`,
    )
  }
})

it("image reads its photographs from files, over gRPC and HTTP", async () => {
  const some = ["7-9000", "9-9620"].map((name) => `examples/image/photographs/${name}.jpg`)
  const expected = printed("examples/image/README.md").split("\n").toSorted()
  for (const url of [grpc, http]) {
    const responses = await run("examples/image/client.ts", `--url=${url}`, ...some)
    expect(responses.split("\n").toSorted()).toEqual(expected)
  }
})

it("sentiment prints what its README says, over gRPC and HTTP", async () => {
  const readme = "examples/sentiment/README.md"
  const texts = ["This is a great movie!", "I don't like it, it's far too long."]
  for (const url of [grpc, http]) {
    expect(await run("examples/sentiment/client.ts", `--url=${url}`, ...texts)).toBe(printed(readme))
  }
})

it("streaming prints what its README says, and goes on from another prompt", async () => {
  const readme = "examples/streaming/README.md"
  expect(await run("examples/streaming/client.ts", grpc)).toBe(printed(readme))
  expect(await run("examples/streaming/client.ts", http)).toBe(printed(readme))
  expect(await run("examples/streaming/client.ts", grpc, "A cat")).toMatch(/^A cat \w.*\.\n$/)
})

it.skipIf(!hasCurl)("streaming's README shows what curl reads", async () => {
  const readme = readFileSync(`${root}/examples/streaming/README.md`, "utf8")
  const [, line = "", shown] = /^(curl .*)\n```\n\n```\n([\s\S]*?)```/m.exec(readme) ?? []
  expect(await shell(line.replace("localhost:8000", http))).toBe(shown)
})

it.skipIf(!hasCurl)("each curl line of the start works as it is printed", async () => {
  const lines = server.output
    .slice(server.output.indexOf("Try:"))
    .split("\n")
    .slice(1)
    .filter((line) => line !== "")
  expect(lines).toHaveLength(11)
  for (const line of lines) {
    const response = await shell(line)
    if (line.includes("/generate_stream")) {
      const about = line.includes("/words/")
        ? { model_name: "words", model_version: "1", WORD: expect.any(String) }
        : { model_name: "writer", model_version: "1", CHARACTER: expect.any(String) }
      for (const event of response.trimEnd().split("\n\n")) {
        expect(JSON.parse(event.replace(/^data: /, ""))).toEqual(about)
      }
    } else if (line.includes("/photographed_digit/")) {
      const outputs = [
        expect.objectContaining({ name: "DIGIT", data: [7] }),
        expect.objectContaining({ name: "PROBABILITY" }),
      ]
      expect(JSON.parse(response)).toMatchObject({ outputs })
    } else if (line.includes("/sentiment -d")) {
      expect(JSON.parse(response)).toEqual({ CLASS: expect.any(String), PROB: expect.any(Number) })
    } else expect(JSON.parse(response)).toMatchObject({ model_version: "1", outputs: expect.any(Array) })
  }
})
