/**
 * Templates do not change results: readers with and without templates are compared after arbitrary earlier documents.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import { readRequest } from "./JsonDecoder.ts"
import { RequestTemplates } from "./RequestTemplates.ts"

const encoder = new TextEncoder()

/** The document with its tensors as plain numbers, or the tag and message of the error. */
const outcome = (read: ReturnType<typeof readRequest>) =>
  Result.match(read, {
    onFailure: ({ _tag, message }) => `${_tag}: ${message}`,
    onSuccess: (document) => ({
      ...document,
      inputs: document.inputs.map((input) => ({
        ...input,
        content: input.content instanceof Uint8Array ? [...input.content] : input.content,
      })),
    }),
  })

const agree = (templates: RequestTemplates, document: Uint8Array) =>
  assert.deepStrictEqual(outcome(templates.read(document)), outcome(readRequest(document)))

const text = (id: string, one: ReadonlyArray<number>, other: ReadonlyArray<number>) =>
  `{"id":${JSON.stringify(id)},"inputs":[
    {"name":"A","datatype":"FP32","shape":[1,${one.length}],"data":${JSON.stringify(one)}},
    {"name":"B","datatype":"INT32","shape":[${other.length}],"data":[${other.join(", ")}]}
  ],"outputs":[{"name":"Y"}],"parameters":{"priority":3,"mode":"fast"}}`

describe("a document like an earlier one", () => {
  const documents = fc.record({
    id: fc.string({ unit: "binary", maxLength: 8 }),
    one: fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 2, maxLength: 3 }),
    other: fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { minLength: 2, maxLength: 3 }),
  })

  it("is read with its own id and elements", () => {
    fc.assert(
      fc.property(fc.array(documents, { maxLength: 20 }), (sent) => {
        const templates = new RequestTemplates()
        for (const { id, one, other } of sent) agree(templates, encoder.encode(text(id, one, other)))
      }),
    )
  })

  it("is refused, or read, as any other, where bytes of it are changed, gone or new", () => {
    const like = encoder.encode(text("7", [1, 2.5], [3, -4]))
    const byte = fc.oneof(fc.nat(255), fc.constantFrom(...encoder.encode('[]{}",:-.0 e\\')))
    const change = fc.record({ at: fc.nat(like.length - 1), gone: fc.nat(3), put: fc.array(byte, { maxLength: 3 }) })
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const templates = new RequestTemplates()
        agree(templates, like)
        let changed = [...like]
        for (const { at, gone, put } of changes) changed = changed.toSpliced(at, gone, ...put)
        agree(templates, Uint8Array.from(changed))
        agree(templates, like)
      }),
      { numRuns: 1000 },
    )
  })

  it("is refused as any other, wherever it ends", () => {
    const like = encoder.encode(text("7", [1, 2.5], [3, -4]))
    const templates = new RequestTemplates()
    agree(templates, like)
    for (let end = 0; end < like.length; end++) agree(templates, like.subarray(0, end))
  })

  it("shares neither shapes, parameters nor elements with it", () => {
    const templates = new RequestTemplates()
    const like = encoder.encode(text("7", [1, 2.5], [3, -4]))
    const [, one, other] = [templates.read(like), templates.read(like), templates.read(like)].map(Result.getOrThrow)
    assert.notStrictEqual(one?.parameters, other?.parameters)
    assert.notStrictEqual(one?.inputs[0]?.shape, other?.inputs[0]?.shape)
    assert.notStrictEqual(one?.inputs[0]?.content, other?.inputs[0]?.content)
  })
})

it.each([
  ["a value where elements are due", '{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":5}]}'],
  ["fewer elements", '{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[]}]}'],
  ["nested ones", '{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[[5]]}]}'],
  ["a number for an id", '{"id":5,"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[5]}]}'],
  ["text behind it", '{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[5]}]} 1'],
])("%s: as without a template", (_, document) => {
  const templates = new RequestTemplates()
  agree(templates, encoder.encode('{"id":"1","inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[5]}]}'))
  agree(templates, encoder.encode('{"inputs":[{"name":"A","datatype":"FP32","shape":[1],"data":[5]}]}'))
  agree(templates, encoder.encode(document))
})

it("elements that stand before what they are have no template, and no other request's", () => {
  const templates = new RequestTemplates()
  for (const value of [5, 6]) {
    agree(templates, encoder.encode(`{"inputs":[{"data":[${value}],"name":"A","datatype":"FP32","shape":[1]}]}`))
  }
})

it("documents that are all different are read on and on, and then those that are alike again", () => {
  const templates = new RequestTemplates()
  for (let index = 0; index < 100; index++) {
    const strange = `{"inputs":[{"name":"A${index}","datatype":"FP32","shape":[1],"data":[${index}]}]}`
    agree(templates, encoder.encode(strange))
    agree(templates, encoder.encode(text(String(index), [1, 2], [index, 4])))
  }
})
