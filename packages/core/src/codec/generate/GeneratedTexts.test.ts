/** The template of a stream gives the documents of the encoder of single responses. */
import { expect, it } from "vitest"
import { Result } from "effect"
import { noParameters } from "../../request/Request.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { WireResponse, WireTensor } from "../../wire/WireRequest.ts"
import { WireText } from "../../wire/WireText.ts"
import { encodeGenerated } from "./GenerateEncoder.ts"
import { GeneratedTexts } from "./GeneratedTexts.ts"

const text = (text: string, name = "TOKEN"): WireTensor => new WireText(name, [1, 1], text)

const response = (outputs: ReadonlyArray<WireTensor>, more: Partial<WireResponse> = {}): WireResponse => ({
  modelName: "m",
  modelVersion: "2",
  id: "",
  parameters: noParameters,
  outputs,
  ...more,
})

const document = (texts: GeneratedTexts, of: WireResponse) => {
  const encoded = Result.getOrThrow(texts.encode(of))
  if (!("template" in encoded)) return { json: new TextDecoder().decode(encoded), isText: false }
  const { template, text } = encoded
  return { json: template.before + text + template.after, isText: true }
}

const single = (of: WireResponse) => new TextDecoder().decode(Result.getOrThrow(encodeGenerated(of)))

it("writes texts as single responses have them", () => {
  const texts = new GeneratedTexts()
  for (const each of [
    "",
    "a",
    'a "word"',
    "back\\slash",
    "\n\t\0\x7f",
    "schön",
    "\u{1f600}",
    "\ufeff",
    "a".repeat(33),
  ]) {
    expect(document(texts, response([text(each)]))).toEqual({ json: single(response([text(each)])), isText: true })
  }
})

it("makes another template for another id, model, version or output", () => {
  const texts = new GeneratedTexts()
  for (const one of [
    response([text("x")]),
    response([text("x")], { id: '7"' }),
    response([text("x")], { modelName: "n" }),
    response([text("x")], { modelVersion: "3" }),
    response([text("x", "OTHER")]),
    response([text("x", "model_name")], { id: "7" }),
    response([text("x", "id")], { id: "7" }),
  ]) {
    expect(document(texts, one)).toEqual({ json: single(one), isText: true })
  }
})

it("leaves all other responses to the encoder of single ones", () => {
  const texts = new GeneratedTexts()
  const bytes = { name: "TOKEN", datatype: "BYTES", shape: [1], bytes: encodeElements([Uint8Array.of(0x61)]) }
  const number = { name: "N", datatype: "INT32", shape: [1], bytes: new Uint8Array(Int32Array.of(7).buffer) }
  for (const one of [
    response([]),
    response([bytes]),
    response([number]),
    response([text("x"), number]),
    response([text("x")], { parameters: { reason: "stop" } }),
  ]) {
    expect(document(texts, one)).toEqual({ json: single(one), isText: false })
  }
})

it("one template serves all texts of a stream", () => {
  const texts = new GeneratedTexts()
  const templates = ["a", "b", "c"].map((each) => {
    const encoded = Result.getOrThrow(texts.encode(response([text(each)])))
    return "template" in encoded ? encoded.template : undefined
  })
  expect(templates[0]).toBeDefined()
  expect(new Set(templates).size).toBe(1)
})
