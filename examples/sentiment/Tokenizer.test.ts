import { readFileSync } from "node:fs"
import { expect, it, test } from "vitest"
import * as Tokenizer from "./Tokenizer.ts"

const tokenizer = await Tokenizer.load(new URL("tokenizer.json", import.meta.url))

/** Tokens of unusual texts, from the library that trained the vocabulary. */
const sample: Record<string, ReadonlyArray<number>> = JSON.parse(
  readFileSync(new URL("tokens-sample.json", import.meta.url), "utf8"),
)

const [classification, separator] = [2, 3]

test("odd texts have the tokens that training gave them", () => {
  for (const [text, expected] of Object.entries(sample)) expect(tokenizer.encode(text), text).toEqual(expected)
})

it("gives equal tokens for ordinary spelling and the spelling of SST-2", () => {
  expect(tokenizer.encode("I don't like it (it's dull).")).toEqual(
    tokenizer.encode("i do n't like it -lrb- it 's dull -rrb- ."),
  )
})

it("cuts a text of a thousand words at 128 tokens, the last of which ends it", () => {
  const tokens = tokenizer.encode("wonderful ".repeat(1000))
  expect(tokens).toHaveLength(128)
  expect([tokens[0], tokens[127]]).toEqual([classification, separator])
})
