/** Programs that the page offers to copy: each is run as a user would, with curl, Node and Python's client. */
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { text as readText } from "node:stream/consumers"
import { Layer } from "effect"
import { Model as ModelClass, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Words, WordsLive } from "../examples/streaming/server.ts"
import { tried, triedLive } from "./dashboard/TriedModels.fixture.ts"
import * as Model from "../packages/dashboard/page/api/Model.ts"
import type { Attempt, Input } from "../packages/dashboard/page/try/call/Attempt.ts"
import * as Curl from "../packages/dashboard/page/try/copy/Curl.ts"
import * as Python from "../packages/dashboard/page/try/copy/Python.ts"
import type { Snippet } from "../packages/dashboard/page/try/copy/Snippet.ts"
import * as TypeScript from "../packages/dashboard/page/try/copy/TypeScript.ts"
import { ofBytes, ofNumbers, ofText } from "../packages/dashboard/page/try/tensor/Tensor.ts"
import { hasCurl, root, shell } from "./Program.ts"

class Sums extends ModelClass.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}

const SumsLive = ModelClass.sequence(Sums, ({ VALUE }, { state: { SUM }, sequence: { id, isStart } }) => ({
  outputs: { TOTAL: isStart && id !== 0n ? SUM + VALUE : -1 },
  state: { SUM: SUM + VALUE },
}))

const start = () =>
  Server.start([...tried, Words, Sums], Layer.mergeAll(triedLive, WordsLive, SumsLive), {
    http: { host: "127.0.0.1", port: 0 },
    grpc: false,
    metrics: false,
    drainTimeout: "10 millis",
  })
let server: Awaited<ReturnType<typeof start>>
/** Below the repository, so that the packages resolve. */
const folder = mkdtempSync(join(root, "test", ".guide-"))
beforeAll(async () => void (server = await start()))
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})

const origin = () => `http://127.0.0.1:${server.http.port}`

/** A Python with the client: that of the tests of the protocol's clients, or that of the machine. */
const python = [join(root, "test/interop/.venv/bin/python"), "python3"].find(
  (program) =>
    (!program.startsWith("/") || existsSync(program)) &&
    spawnSync(program, ["-c", "import numpy, tritonclient.http"]).status === 0,
)
if (python === undefined) console.log("Skipped Python: there is no tritonclient; npm run test:interop installs it")
if (!hasCurl) console.log("Skipped curl: it is not installed")

const describeModel = async (name: string): Promise<Model.Model> => {
  const path = `${origin()}/v2/models/${name}/versions/1`
  const metadata: Parameters<typeof Model.make>[1] = JSON.parse(await (await fetch(path)).text())
  const config: Parameters<typeof Model.make>[2] = JSON.parse(await (await fetch(`${path}/config`)).text())
  return Model.make("1", metadata, config)
}

type Given = Readonly<Record<string, Pick<Input, "tensor" | "fileName">>>

interface Case {
  readonly model: string
  readonly inputs: Given
  readonly parameters?: Attempt["parameters"]
  readonly id?: string
  readonly sequence?: Attempt["sequence"]
  /** Output of each program; empty for curl if the response is saved to a file. */
  readonly curl: string | RegExp
  readonly typescript: string | RegExp
  readonly python: string | RegExp
}

const attemptOf = async ({ model: name, inputs, parameters = {}, id = "", sequence }: Case): Promise<Attempt> => {
  const model = await describeModel(name)
  const given = model.inputs.flatMap((field) => {
    const { [field.name]: input } = inputs
    return input === undefined ? [] : [{ field, ...input }]
  })
  return { model, inputs: given, parameters, id, sequence }
}

const save = ({ files }: Snippet): void => {
  for (const { name, bytes } of files) writeFileSync(join(folder, name), bytes)
}

const numbers = (datatype: string, shape: ReadonlyArray<number>, values: ReadonlyArray<number | bigint>) => ({
  tensor: ofNumbers(datatype, shape, values),
})
const text = (value: string) => ({ tensor: ofText(value) })

const difficult = `it's "quoted" \\ $HOME \`id\` %s\n\u00e9 \u{1f600}`
const order = {
  customer: "Ann",
  amount: 3,
  express: true,
  size: "large",
  tags: ["a", "it's"],
  pay: { kind: "cash" },
}
const picture = Uint8Array.from({ length: 300 }, (_, index) => (index * 7) % 256)

const cases: Readonly<Record<string, Case>> = {
  "labels, scalars of each kind, an id and parameters": {
    model: "options",
    inputs: {
      COLOUR: numbers("INT32", [1], [2]),
      LARGE: numbers("INT64", [1], [9007199254740993n]),
      SMALL: numbers("UINT8", [1], [7]),
      ON: numbers("BOOL", [1], [1]),
      NOTE: text(difficult),
    },
    parameters: { temperature: 0.5, seed: 9223372036854775807n },
    id: "it's 1",
    curl: /"id":"it's 1".*9007199254740993.*"blue 7 true it's \\"quoted\\" \\\\ \$HOME `id` %s\\né 😀 0.5 9223372036854775807"|"data":\["blue 7/,
    typescript:
      /blue 7 true it\\'s "quoted" [\\]+ \$HOME `id` %s\\né 😀 0.5 9223372036854775807',\s+LARGE: 9007199254740993n/,
    python: /blue 7 true it\\?'s "quoted" \\+ \$HOME `id` %s(\\n|\n|\\\\n)[\s\S]*LARGE \[9007199254740993\]/,
  },
  "JSON by its schema": {
    model: "order",
    inputs: { ORDER: text(JSON.stringify(order)) },
    curl: /\{\\"customer\\":\\"Ann\\",\\"amount\\":3/,
    typescript: /amount: 3[\s\S]*tags: \[ 'a', "it's" \]/,
    python: /Ann.*amount.*3/,
  },
  "numbers in JSON": {
    model: "twice",
    inputs: { x: numbers("FP32", [2, 3], [0.1, 2, 3, 4, 5, 6e-5]) },
    curl: "",
    typescript: /doubled/,
    python: /doubled \[\[\[2\.0*e-01 4\.0*e\+00/,
  },
  "FP16, and infinities": {
    model: "twice",
    inputs: {
      x: numbers("FP32", [2, 3], [1, 2, 3, 4, 5, Infinity]),
      y: numbers("FP16", [2], [0.1, -2]),
    },
    curl: "",
    typescript: /halves/,
    python: /halves \[\[ 0\.1 *-2\. *\]\]/,
  },
  "a large tensor, from a file": {
    model: "colours",
    inputs: {
      pixels: numbers(
        "UINT8",
        [32, 32, 3],
        Array.from({ length: 3072 }, (_, index) => index % 3),
      ),
    },
    curl: /"name":"mean","datatype":"FP32","shape":\[3\],"data":\[0(\.0)?,1(\.0)?,2(\.0)?\]/,
    typescript: /mean/,
    python: /mean \[0\. 1\. 2\.\]/,
  },
  "a file with an odd name": {
    model: "mirror",
    inputs: { DATA: { tensor: ofBytes(picture), fileName: "it's a picture.png" } },
    curl: "",
    typescript: /DATA/,
    python: /DATA \[b'\\x00\\x07\\x0e/,
  },
  "bytes that are no text": {
    model: "mirror",
    inputs: { DATA: { tensor: ofBytes(Uint8Array.of(0, 255, 37, 10)) } },
    curl: "",
    typescript: /DATA/,
    python: /DATA \[b'\\x00\\xff%\\n'\]/,
  },
  "the start of a sequence": {
    model: "sums",
    inputs: { VALUE: numbers("INT32", [1], [7]) },
    sequence: { id: 9007199254740993n, isStart: true, isEnd: false },
    curl: /"name":"TOTAL","datatype":"INT32","shape":\[1\],"data":\[7\]/,
    typescript: /TOTAL: 7/,
    python: /TOTAL \[7\]/,
  },
  "a sequence of one request, whose id is a text": {
    model: "sums",
    inputs: { VALUE: numbers("INT32", [1], [8]) },
    sequence: { id: "it's a text", isStart: true, isEnd: true },
    curl: /"data":\[8\]/,
    typescript: /TOTAL: 8/,
    python: /TOTAL \[8\]/,
  },
  "a stream": {
    model: "words",
    inputs: {
      PROMPT: text("The keeper"),
      MAX_WORDS: numbers("INT32", [1], [2]),
      SEED: numbers("INT32", [1], [5]),
    },
    curl: /"WORD":"heard"[\s\S]*"WORD":"the"/,
    typescript: /WORD: 'heard'[\s\S]*WORD: 'the'/,
    python: /"WORD":"heard"[\s\S]*"WORD":"the"/,
  },
}

/** Runs a program without blocking the server of this process. */
const runIn = async (program: string, args: ReadonlyArray<string>) => {
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], timeout: 30_000 })
  const [stdout, stderr, [status]] = await Promise.all([
    readText(child.stdout),
    readText(child.stderr),
    once(child, "close"),
  ])
  return { status: Number(status), stdout, stderr }
}

const matching = (output: string, expected: string | RegExp): void =>
  typeof expected === "string" ? expect(output).toBe(expected) : expect(output).toMatch(expected)

describe.each(Object.entries(cases))("%s", (_, given) => {
  it.skipIf(!hasCurl)("with curl", async () => {
    const snippet = Curl.make(await attemptOf(given), origin())
    save(snippet)
    matching(await shell(`cd '${folder}' && ${snippet.text}`), given.curl)
    if (given.curl === "") expect(readFileSync(join(folder, "response.bin"), "latin1")).toContain('"outputs"')
  })

  it("with TypeScript", async () => {
    const snippet = TypeScript.make(await attemptOf(given), origin())
    save(snippet)
    writeFileSync(join(folder, "program.ts"), snippet.text)
    const { status, stdout, stderr } = await runIn(process.execPath, ["program.ts"])
    expect(stderr).toBe("")
    expect(status).toBe(0)
    matching(stdout, given.typescript)
  })

  it.skipIf(python === undefined)("with Python", async () => {
    const snippet = Python.make(await attemptOf(given), origin())
    save(snippet)
    writeFileSync(join(folder, "program.py"), snippet.text)
    const { status, stdout, stderr } = await runIn(python ?? "", ["program.py"])
    expect(stderr).toBe("")
    expect(status).toBe(0)
    matching(stdout, given.python)
  })
})

it("the TypeScript programs compile", async () => {
  for (const [index, given] of Object.values(cases).entries()) {
    writeFileSync(join(folder, `compiled-${index}.ts`), TypeScript.make(await attemptOf(given), origin()).text)
  }
  const configuration = join(folder, "tsconfig.json")
  writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["compiled-*.ts"] }))
  const { status, stdout } = await runIn(join(root, "node_modules/.bin/tsc"), ["-p", configuration])
  expect(stdout).toBe("")
  expect(status).toBe(0)
})
