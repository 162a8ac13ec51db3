/**
 * The last line of the compiler's message for programs with one mistake must name the mistake. One run of the compiler
 * checks the programs of fixtures/messages/programs.ts, and those of the tables below: every form of a handler with
 * every mistake.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "./Program.ts"

interface Program {
  readonly title: string
  readonly file: string
  /** Its lines, counted from 1. */
  readonly from: number
  readonly to: number
  /** The end of the last line of the only message; undefined for a program that compiles. */
  readonly expected: string | undefined
}

/** The code of a handler whose parameter is `parameter` and that answers `value`. */
type Form = (parameter: string, value: string) => string

const resultForms: Readonly<Record<string, Form>> = {
  "a function": (parameter, value) => `(${parameter}) => (${value})`,
  "an asynchronous function": (parameter, value) => `async (${parameter}) => (${value})`,
  "a promise": (parameter, value) => `(${parameter}) => Promise.all([]).then(() => (${value}))`,
  "Effect.succeed": (parameter, value) => `(${parameter}) => Effect.succeed(${value})`,
  "Effect.map": (parameter, value) => `(${parameter}) => Effect.map(Weights, () => (${value}))`,
  "Effect.gen": (parameter, value) => `(${parameter}) => Effect.gen(function* () { yield* Weights; return ${value} })`,
  "Effect.fn": (parameter, value) =>
    `Effect.fn("answer")(function* (${parameter}) { yield* Weights; return ${value} })`,
  "an Effect that builds a function": (parameter, value) =>
    `Effect.gen(function* () { yield* Weights; return (${parameter}) => (${value}) })`,
  "an Effect that builds Effect.fn": (parameter, value) =>
    `Effect.gen(function* () { yield* Weights; return Effect.fn("answer")(function* (${parameter}) { return ${value} }) })`,
}

const responses: Readonly<Record<string, Form>> = {
  "an array": (parameter, value) => `(${parameter}) => [${value}]`,
  "a generator": (parameter, value) => `function* (${parameter}) { yield ${value} }`,
  "an asynchronous generator": (parameter, value) => `async function* (${parameter}) { yield ${value} }`,
  "Stream.make": (parameter, value) => `(${parameter}) => Stream.make(${value})`,
  "Stream.fromEffect": (parameter, value) =>
    `(${parameter}) => Stream.fromEffect(Effect.map(Weights, () => (${value})))`,
  "Stream.unwrap of Effect.fn": (parameter, value) =>
    `(sample) => Stream.unwrap(Effect.fn("answer")(function* (${parameter}: typeof sample) { yield* Weights; return Stream.make(${value}) })(sample))`,
  "an Effect that builds a generator": (parameter, value) =>
    `Effect.gen(function* () { yield* Weights; return function* (${parameter}) { yield ${value} } })`,
  "an Effect that builds a Stream": (parameter, value) =>
    `Effect.map(Weights, () => (${parameter}) => Stream.make(${value}))`,
}

/** Code for each output. */
type Outputs = Readonly<Record<string, string>>

interface Mistake {
  readonly outputs: Outputs
  readonly expected?: string
}

const of = (expected: string) => `… is not assignable to type '"output ${expected}"'.`

const sample = { LOUD: "TEXT", MOOD: `"calm"`, SCORES: "scores" }

const mistakesOfSamples: Readonly<Record<string, Mistake>> = {
  "no mistake": { outputs: { ...sample, NOTE: "TEXT" } },
  "a misspelt output": { outputs: { ...sample, NOTTE: "TEXT" }, expected: of("NOTTE is not declared by model shout") },
  "a missing output": {
    outputs: { LOUD: "TEXT", MOOD: `"angry"` },
    expected: of("SCORES of model shout is missing"),
  },
  "another datatype": {
    outputs: { ...sample, SCORES: "integers" },
    expected: of("SCORES of model shout is FP32[2], not INT32[2]"),
  },
  "another number of dims": {
    outputs: { ...sample, SCORES: "matrix" },
    expected: of("SCORES of model shout is FP32[2], not FP32[1,2]"),
  },
  "another label": { outputs: { ...sample, MOOD: `"loud"` }, expected: of("MOOD of model shout has no label loud") },
}

const batch = { LOUD: "TEXT", MOOD: "moodsOf(TEXT.shape)", SCORES: "scoresOf(TEXT.shape)" }

const mistakesOfBatches: Readonly<Record<string, Mistake>> = {
  "no mistake": { outputs: { ...batch, NOTE: "TEXT" } },
  "a misspelt output": { outputs: { ...batch, NOTTE: "TEXT" }, expected: of("NOTTE is not declared by model shout") },
  "a missing output": {
    outputs: { LOUD: "TEXT", MOOD: "moodsOf(TEXT.shape)" },
    expected: of("SCORES of model shout is missing"),
  },
  "another datatype": {
    outputs: { ...batch, SCORES: "integersOf(TEXT.shape)" },
    expected: of("SCORES of model shout is FP32[-1,2], not INT32[-1,2]"),
  },
  "no batch dimension": {
    outputs: { ...batch, SCORES: "scores" },
    expected: of("SCORES of model shout is FP32[-1,2], not FP32[2]"),
  },
}

const record = (outputs: Outputs) =>
  `{ ${Object.entries(outputs)
    .map(([name, code]) => `${name}: ${code}`)
    .join(", ")} }`

const results = (outputs: Outputs) => `requests.map(({ inputs: { TEXT } }) => Result.succeed(${record(outputs)}))`

/** The code of outputs and a state. */
const withState = (state: string) => (outputs: Outputs) => `{ outputs: ${record(outputs)}, state: { LAST: ${state} } }`

/** Each sequence has a handler. */
const perSequence = Object.fromEntries(
  Object.entries(resultForms).map(([name, form]): [string, Form] => [
    name,
    (parameter, value) => `() => ${form(parameter, value)}`,
  ]),
)

const sequenceVariants = [
  {
    variant: "sequence",
    model: "ShoutOn",
    forms: resultForms,
    mistakes: mistakesOfSamples,
    parameter: "{ TEXT }",
    value: withState("scores"),
  },
  {
    variant: "sequenceBatch",
    model: "ShoutOn",
    forms: resultForms,
    mistakes: mistakesOfBatches,
    parameter: "{ TEXT }",
    value: withState("scoresOf(TEXT.shape)"),
  },
  {
    variant: "iterate",
    model: "Shout, iteration",
    forms: resultForms,
    mistakes: mistakesOfBatches,
    parameter: "{ TEXT }",
    value: (outputs: Outputs) =>
      `{ outputs: ${record(outputs)}, state: { LAST: scoresOf(TEXT.shape) }, isDone: [true] }`,
  },
  {
    variant: "sequenceStream",
    model: "ShoutOn",
    forms: responses,
    mistakes: mistakesOfSamples,
    parameter: "{ TEXT }",
    value: withState("scores"),
  },
  {
    variant: "perSequence",
    model: "ShoutAlone",
    forms: perSequence,
    mistakes: mistakesOfSamples,
    parameter: "{ TEXT }",
    value: record,
  },
]

const variants = [
  { variant: "each", forms: resultForms, mistakes: mistakesOfSamples, parameter: "{ TEXT }", value: record },
  { variant: "batch", forms: resultForms, mistakes: mistakesOfBatches, parameter: "{ TEXT }", value: record },
  { variant: "requests", forms: resultForms, mistakes: mistakesOfBatches, parameter: "requests", value: results },
  { variant: "stream", forms: responses, mistakes: mistakesOfSamples, parameter: "{ TEXT }", value: record },
].map((variant) => ({ ...variant, model: "Shout" }))

const imports = [
  `import { Model } from "@nereid/core"`,
  `import { Effect, Result, Stream } from "effect"`,
  `import { integers, integersOf, iteration, matrix, moodsOf, scores, scoresOf, Shout, ShoutAlone, ShoutOn, Weights } from "../fixtures/messages/models.ts"`,
]

/** One line of code each. */
const generated = [...variants, ...sequenceVariants].flatMap(({ variant, model, forms, mistakes, parameter, value }) =>
  Object.entries(forms).flatMap(([form, code]) =>
    Object.entries(mistakes).map(([mistake, { outputs, expected }]) => ({
      title: `Model.${variant}, ${form}: ${mistake}`,
      line: `Model.${variant}(${model}, ${code(parameter, value(outputs))})`,
      expected,
    })),
  ),
)

const written = "test/fixtures/messages/programs.ts"

/** Each begins with a comment that is its title, and ends with its message, or an empty one where it compiles. */
const programs = (): ReadonlyArray<Program> => {
  const lines = readFileSync(join(root, written), "utf8").split("\n")
  const found: Array<Program> = []
  let title = ""
  let from = 0
  for (const [index, line] of lines.entries()) {
    const [, marker, text = ""] = /^(\/\/(?:=>)?) ?(.*)$/.exec(line) ?? []
    if (marker === "//") [title, from] = [text, index + 1]
    if (marker === "//=>")
      found.push({ title, file: basename(written), from, to: index + 1, expected: text === "" ? undefined : text })
  }
  return found
}

interface Message {
  readonly file: string
  readonly line: number
  readonly lastLine: string
}

/** The messages of the compiler, as it prints them for a terminal. */
const messages = (output: string): ReadonlyArray<Message> => {
  const found: Array<Message> = []
  for (const line of output.split("\n").filter((line) => line !== "")) {
    const [, file = "", number, text = ""] = /^(\S.*?)\((\d+),\d+\): error TS\d+: (.*)$/.exec(line) ?? []
    const last = number === undefined ? found.pop() : { file: basename(file), line: Number(number) }
    if (last === undefined) throw new Error(`The compiler printed: ${output}`)
    found.push({ ...last, lastLine: number === undefined ? line.trim() : text })
  }
  return found
}

const compile = async (folder: string): Promise<ReadonlyArray<Message>> => {
  const include = ["*.ts", "../fixtures/messages/*.ts"]
  const config = { extends: "../fixtures/messages/tsconfig.json", include }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
  writeFileSync(join(folder, "generated.ts"), [...imports, ...generated.map(({ line }) => line)].join("\n"))
  const command = [join(root, "node_modules/typescript/bin/tsc"), "-p", folder, "--pretty", "false"]
  const output = await new Promise<string>((resolve) => {
    // Its exit status is 2, as there are mistakes.
    execFile(process.execPath, command, { cwd: root, maxBuffer: 2 ** 24 }, (_, stdout) => resolve(stdout))
  })
  return messages(output)
}

const folder = mkdtempSync(join(root, "test", ".messages-"))
const found = await compile(folder).finally(() => rmSync(folder, { recursive: true }))

const all = [
  ...programs(),
  ...generated.map(({ title, expected }, index): Program => {
    const line = imports.length + index + 1
    return { title, file: "generated.ts", from: line, to: line, expected }
  }),
]

const within = ({ file, from, to }: Program) =>
  found.filter((message) => message.file === file && message.line >= from && message.line <= to)

describe("the last line of the compiler's message", () => {
  it.each(all)("$title", (program) => {
    const lines = within(program).map(({ lastLine }) => lastLine)
    const { expected } = program
    if (expected === undefined) return expect(lines).toEqual([])
    if (!expected.startsWith("…")) return expect(lines).toEqual([expected])
    expect(lines).toEqual([expect.stringMatching(/./)])
    expect(`…${lines[0]?.slice(1 - expected.length)}`).toBe(expected)
  })
})

it("there are no other messages", () => {
  expect(found).toHaveLength(all.filter(({ expected }) => expected !== undefined).length)
})
